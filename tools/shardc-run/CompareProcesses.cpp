//===- CompareProcesses.cpp - Processes that run the same -----------------===//

#include "CompareProcesses.h"

#include "LoadData.h"
#include "LoadPlan.h"
#include "Report.h"

#include "base/ReadFile.h"
#include "base/ReadableFile.h"
#include "checkpoint/Manifest.h"
#include "comm/RankProperties.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <map>

using namespace shardc::run;
using namespace shardc::rt;

/// Flags that mean something to one process or host: threads, the GPUs and the
/// code of its CPU, where it keeps plans, and what rank 0 alone prints.
static constexpr absl::string_view ownFlags[] = {
    "--cpu-target",    "--gpu",        "--json",    "--log-every", "--metrics",
    "--no-plan-cache", "--plan-cache", "--threads", "--tune-gemms"};

/// The name of the property that is the input.
static constexpr char modelProperty[] = "the same model";

/// The first line in which two texts differ, from 1.
static size_t firstDifference(const std::vector<absl::string_view> &one,
                              const std::vector<absl::string_view> &other) {
  size_t line = 0;
  while (line < one.size() && line < other.size() && one[line] == other[line])
    ++line;
  return line + 1;
}

/// The first line in which the models of two processes differ.
static std::string describeDifference(const std::string &path, int rank,
                                      const std::string &own,
                                      const std::string &ofFirst) {
  std::vector<absl::string_view> lines = absl::StrSplit(own, '\n'),
                                 linesOfFirst = absl::StrSplit(ofFirst, '\n');
  const size_t number = firstDifference(lines, linesOfFirst);
  auto quote = [&](const std::vector<absl::string_view> &from) {
    if (number > from.size())
      return std::string("not there");
    return absl::StrCat("\"", from[number - 1].substr(0, 200), "\"");
  };
  return absl::StrCat("; line ", number, " of ", path, " is ",
                      quote(linesOfFirst), " on rank 0, and ", quote(lines),
                      " on rank ", rank);
}

/// Bytes of a file that differ between files of other contents, more or less:
/// all of a small file; of a large one pieces at equal distances, the first and
/// the last included. At the end of an .npz are the checksums of all its
/// arrays.
static absl::StatusOr<std::string> sampleOf(const ReadableFile &file) {
  constexpr uint64_t pieces = 16, piece = 1 << 14;
  if (file.bytes() <= pieces * piece)
    return file.readUpTo(0, file.bytes());
  std::string sample;
  for (uint64_t i = 0; i < pieces; ++i) {
    // In two terms, since a product of bytes may not fit.
    const uint64_t last = file.bytes() - piece;
    absl::StatusOr<std::string> bytes = file.readUpTo(
        last / (pieces - 1) * i + last % (pieces - 1) * i / (pieces - 1),
        piece);
    if (!bytes.ok())
      return bytes;
    sample += *bytes;
  }
  return sample;
}

/// The file `path`, which messages call `name`, as a process has it. What
/// cannot be read is no difference: whoever needs it says why.
static RankProperty describeFile(const std::string &name,
                                 const std::string &path) {
  absl::StatusOr<ReadableFile> file = ReadableFile::open(path);
  absl::StatusOr<std::string> sample =
      file.ok() ? sampleOf(*file) : file.status();
  return {name, sample.ok()
                    ? absl::StrCat(
                          name, " of ", file->bytes(), " bytes with checksum ",
                          absl::Hex(checksumOf(*sample), absl::kZeroPad8))
                    : absl::StrCat("no ", name, " that can be read")};
}

/// The files that processes read.
static std::vector<RankProperty> describeFiles(const Arguments &arguments) {
  std::map<std::string, std::string> paths; // By name.
  for (const std::string &spec : {arguments.data, arguments.evalData})
    for (const std::string &path : dataFiles(spec))
      // That of the digits may lie anywhere.
      paths.emplace(absl::StartsWith(spec, "digits") ? "digits.npz" : path,
                    path);
  if (!arguments.loadParams.empty())
    paths.emplace(arguments.loadParams, arguments.loadParams);
  std::vector<RankProperty> files;
  for (const auto &[name, path] : paths)
    files.push_back(describeFile(name, path));
  return files;
}

int shardc::run::compareProcesses(const Arguments &arguments, Store &store) {
  std::vector<RankProperty> properties;
  for (const std::string &flag : arguments.flags) {
    std::string name = flag.substr(0, flag.find('='));
    if (!absl::c_linear_search(ownFlags, name))
      properties.push_back({name, flag});
  }
  absl::StatusOr<std::string> content =
      arguments.piped ? *arguments.piped : readFile(arguments.input);
  if (!content.ok())
    return report(content.status());
  // Plans of one content may lie anywhere; those compiled from a model have its
  // path in their places.
  const bool isModel = !isPlan(arguments);
  properties.push_back(
      {modelProperty,
       absl::StrCat(isModel ? absl::StrCat("the model ", arguments.input)
                            : "a plan",
                    " of ", content->size(), " bytes with checksum ",
                    absl::Hex(checksumOf(*content), absl::kZeroPad8))});
  for (RankProperty &file : describeFiles(arguments))
    properties.push_back(std::move(file));
  absl::StatusOr<std::vector<std::string>> all =
      store.gatherAll("comparing flags, models and data",
                      formatProperties(properties), arguments.deadline);
  if (!all.ok())
    return report(all.status());
  std::vector<RankDifference> differences = findDifferences(*all);
  if (differences.empty())
    return 0;
  auto model = absl::c_find_if(differences, [](const RankDifference &one) {
    return one.name == modelProperty;
  });
  std::string line;
  if (model != differences.end()) {
    constexpr size_t mostBytes = size_t(1) << 20;
    absl::StatusOr<std::vector<std::string>> texts =
        store.gatherAll("comparing models",
                        isModel && content->size() <= mostBytes ? *content : "",
                        arguments.deadline);
    if (!texts.ok())
      return report(texts.status());
    const std::string &own = (*texts)[model->rank], &ofFirst = texts->front();
    if (!own.empty() && !ofFirst.empty() && own != ofFirst)
      line = describeDifference(arguments.input, model->rank, own, ofFirst);
  }
  absl::Status status = toStatus(differences);
  return report(
      absl::Status(status.code(), absl::StrCat(status.message(), line)));
}
