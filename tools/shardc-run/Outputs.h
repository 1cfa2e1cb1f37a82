//===- Outputs.h - Files that a run writes ----------------------*- C++ -*-===//
//
// Faults that can be known are found before the first step. An output that
// cannot be written in the end is written elsewhere: work is not lost.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_OUTPUTS_H
#define SHARDC_TOOLS_SHARDC_RUN_OUTPUTS_H

#include "Arguments.h"

#include "shardc-rt/Trainer.h"

#include <functional>
#include <string>
#include <sys/types.h>

namespace shardc::run {

/// Checks that each output of a run can be written, as far as can be told, and
/// that none is an input or another output, also through links. Changes no
/// file. Exit code 0, or 1 and an error printed.
int checkOutputs(const Arguments &arguments);

/// Checks that there is room for the parameters of `plan` at the path of
/// --save-params, and for a checkpoint. Exit code 0, or 1 and an error printed.
int checkRoom(const Arguments &arguments, const rt::Plan &plan);

/// Writes the parameters of `executor` to `path` or, where that fails,
/// elsewhere: to a new file beside it, then to one in $TMPDIR. Its processes
/// call it together. Exit code 0; 1 if they are elsewhere or nowhere, and an
/// error printed that says which, both on rank 0 alone; 6 if a process has
/// gone. `onProgress` is called now and then.
int saveParameters(const rt::Executor &executor, const std::string &path,
                   const std::function<void()> &onProgress);

/// Writes predictions to `path` or elsewhere, as `saveParameters`, in this
/// process alone. Exit code 0, or 1 and an error printed.
int savePredictions(const rt::ArrayMap &predictions, const std::string &path);

/// The file of --metrics: a line for each step, whole as soon as it is added.
class Metrics {
public:
  ~Metrics();

  /// Makes the file, empty. A training that goes on after `stepsBefore` steps
  /// keeps the lines of these in a file that is there. Exit code 0, or the code
  /// and an error printed.
  int open(const std::string &path, int64_t stepsBefore);

  /// Adds a line if a file is open. If that fails, prints so and writes this
  /// line and those that follow elsewhere, as `saveParameters` does.
  void add(const rt::StepRecord &record, const rt::RunResult &result);

  /// 0, or 1 if not all lines are in the file that was asked for.
  int exitCode() const { return code; }

private:
  bool append(const std::string &line);

  std::string path;
  int file = -1;   ///< Its descriptor; negative: none.
  off_t bytes = 0; ///< Written to it.
  int code = 0;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_OUTPUTS_H
