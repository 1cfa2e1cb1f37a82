//===- Compile.h - From a source file to a plan -----------------*- C++ -*-===//
//
// The whole compiler behind one function, in terms of the standard library
// alone, so that programs without LLVM's headers can call it. Every call has a
// context of its own: thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DRIVER_COMPILE_H
#define SHARDC_DRIVER_COMPILE_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Support/ExitCodes.h"
#include "shardc/Support/OutputFiles.h"

#include <string>
#include <vector>

namespace shardc {

/// An error, a warning or a remark of a compilation.
struct CompileMessage {
  enum class Severity { Error, Warning, Remark, Note };
  Severity severity = Severity::Error;
  /// The place; line and column from 1. Empty and 0: there is none.
  std::string file;
  int64_t line = 0, column = 0;
  std::string text;
  std::vector<CompileMessage> notes = {};
};

/// "error", "warning", "remark" or "note".
const char *toString(CompileMessage::Severity severity);

/// The result of a compilation.
struct CompileResult {
  ExitCode code = ExitCode::Ok;
  /// The bytes of the plan file (docs/PlanFormat.md) if `code` is Ok.
  std::string plan;
  /// Errors and remarks, as the command line prints them, except for the name
  /// of the tool before an error without a location ("error: …").
  std::string diagnostics;
  /// The same, one by one.
  std::vector<CompileMessage> messages = {};
};

/// An error if a compilation would overwrite one of its inputs: `inputs` or
/// `options.machine`, by one of `outputs` or a file below `options.dumpDir`.
/// Empty if there is none.
std::string checkOutputs(std::vector<NamedFile> inputs,
                         std::vector<NamedFile> outputs,
                         const CompileOptions &options);

/// Compiles the source module in the file `path` ("-": standard input) through
/// all phases.
CompileResult compileFile(const std::string &path,
                          const CompileOptions &options);

/// The same for the text of a module; `name` stands for the file in locations.
CompileResult compileSource(const std::string &source, const std::string &name,
                            const CompileOptions &options);

/// Runs the phases up to and including `phase` and leaves the text of the IR in
/// `plan` of the result (the plan itself for "plan"). Code Usage, with a
/// message that names the nearest one, for an unknown phase.
CompileResult compileFileTo(const std::string &path, const std::string &phase,
                            const CompileOptions &options);

/// The same for IR of the phase `from`, through the phases after it and up to
/// `to`; code InvalidInput if the IR is of another phase. A plan from a phase
/// after `collectives` has no explanation.
CompileResult compileFileFromTo(const std::string &path,
                                const std::string &from, const std::string &to,
                                const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_DRIVER_COMPILE_H
