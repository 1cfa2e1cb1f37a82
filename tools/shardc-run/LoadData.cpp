//===- LoadData.cpp - Data sets of a run ----------------------------------===//

#include "LoadData.h"

#include "Report.h"

#include <cstdlib>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

/// Where shipped data sets lie: the user's choice, an installation, the source
/// tree this was built from.
static std::vector<std::string> dataDirs() {
  std::vector<std::string> dirs;
  if (const char *chosen = std::getenv("SHARDC_DATA_DIR"))
    dirs.push_back(chosen);
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length > 0) {
    std::string exe(path, length);
    std::string bin = exe.substr(0, exe.rfind('/'));
    dirs.push_back(bin.substr(0, bin.rfind('/')) + "/share/shardc");
  }
  dirs.push_back(SHARDC_SOURCE_DATA_DIR);
  return dirs;
}

std::vector<std::string> shardc::run::dataFiles(const std::string &spec) {
  DatasetOptions options;
  options.dataDirs = dataDirs();
  return rt::dataFiles(spec, options);
}

int shardc::run::loadData(const std::vector<std::string> &specs,
                          const Arguments &arguments, const Plan &plan,
                          absl::string_view program, bool byRows,
                          const std::function<void()> &onProgress,
                          std::vector<Dataset> &datasets) {
  DatasetOptions options;
  options.seed = arguments.seed;
  options.dataDirs = dataDirs();
  options.byRows = byRows;
  options.onProgress = onProgress;
  absl::StatusOr<std::vector<Dataset>> loaded = loadDatasets(specs, options);
  if (!loaded.ok())
    return report(loaded.status());
  for (Dataset &dataset : *loaded)
    if (absl::Status status = fitToPlan(plan, dataset, program); !status.ok())
      return report(status);
  datasets = *std::move(loaded);
  return 0;
}
