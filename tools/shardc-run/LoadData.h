//===- LoadData.h - Data sets of a run --------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_LOADDATA_H
#define SHARDC_TOOLS_SHARDC_RUN_LOADDATA_H

#include "Arguments.h"

#include "shardc-rt/Trainer.h"

#include <functional>

namespace shardc::run {

/// The files of the data `spec`.
std::vector<std::string> dataFiles(const std::string &spec);

/// Loads the data `specs` and fits them to what `program` of `plan` takes, or
/// all programs together if that is empty: exit code 0, or the code and an
/// error printed. With `byRows` their arrays stay in their files where they can
/// (`DatasetOptions`). `onProgress` is called now and then.
int loadData(const std::vector<std::string> &specs, const Arguments &arguments,
             const rt::Plan &plan, absl::string_view program, bool byRows,
             const std::function<void()> &onProgress,
             std::vector<rt::Dataset> &datasets);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_LOADDATA_H
