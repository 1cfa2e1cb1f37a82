//===- UsableCpus.cpp - The CPUs that this process may use ----------------===//

#include "base/UsableCpus.h"

#include "base/ReadFile.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cmath>
#include <sched.h>
#include <vector>

#include <unistd.h>

using namespace shardc::rt;

int UsableCpus::count() const {
  int most = quota > 0 ? static_cast<int>(std::ceil(quota)) : allowed;
  return std::max(1, std::min(allowed, most));
}

std::string UsableCpus::limits() const {
  std::string text;
  if (allowed < online)
    text = absl::StrCat(allowed, " of ", online, " CPUs by affinity");
  if (quota > 0 && quota < allowed)
    absl::StrAppend(&text, text.empty() ? "" : ", ", "CPU quota ", quota);
  return text;
}

/// The CPUs of "QUOTA PERIOD", both in microseconds; 0 for "max", -1 and what
/// is no such text.
static double toCpus(absl::string_view text) {
  std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t quota = 0, period = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0)
    return 0;
  return static_cast<double>(quota) / static_cast<double>(period);
}

/// The least quota of a group and those above it, up to `mount`, where its
/// controller is. A container may see another path than the machine: groups
/// that are not there are passed over.
static double readQuota(const std::string &mount, std::string group,
                        bool isVersion2) {
  double least = 0;
  while (true) {
    std::string folder = mount + group;
    std::string text;
    for (const char *name :
         isVersion2 ? std::vector<const char *>{"/cpu.max"}
                    : std::vector<const char *>{"/cpu.cfs_quota_us",
                                                "/cpu.cfs_period_us"})
      absl::StrAppend(&text, readFile(folder + name).value_or(""), " ");
    if (double quota = toCpus(text); quota > 0)
      least = least > 0 ? std::min(least, quota) : quota;
    size_t end = group.rfind('/');
    if (end == std::string::npos)
      return least;
    group.resize(end);
  }
}

double shardc::rt::readCpuQuota(const std::string &groups,
                                const std::string &root) {
  double least = 0;
  auto add = [&](double quota) {
    if (quota > 0)
      least = least > 0 ? std::min(least, quota) : quota;
  };
  // Lines are NUMBER:CONTROLLERS:PATH; version 2 has no controllers.
  for (absl::string_view line : absl::StrSplit(groups, '\n')) {
    std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3)
      continue;
    std::string path = fields[2] == "/" ? "" : fields[2];
    std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    if (fields[1].empty())
      add(readQuota(root, path, /*isVersion2=*/true));
    else if (absl::c_linear_search(controllers, "cpu"))
      for (const std::string &mount : {std::string("cpu"), fields[1]})
        add(readQuota(absl::StrCat(root, "/", mount), path,
                      /*isVersion2=*/false));
  }
  return least;
}

UsableCpus shardc::rt::findUsableCpus() {
  UsableCpus cpus;
  cpus.online = std::max<int>(1, sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  cpus.allowed = sched_getaffinity(0, sizeof(mask), &mask) == 0
                     ? CPU_COUNT(&mask)
                     : cpus.online;
  cpus.quota = readCpuQuota(readFile("/proc/self/cgroup").value_or(""),
                            "/sys/fs/cgroup");
  return cpus;
}
