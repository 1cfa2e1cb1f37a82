//===- CompileInput.h - A plan from a model file ----------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H

#include "shardc/Pipelines/CompileOptions.h"

#include <optional>
#include <string>

namespace shardc::run {

struct CompileRequest {
  std::string path;
  /// The text of the model; if there is none, it is read from the path.
  std::optional<std::string> source;
  CompileOptions options;
};

struct CompileOutcome {
  int exitCode = 0;
  /// The bytes of a plan if `exitCode` is 0.
  std::string plan;
  /// Errors and remarks for the user.
  std::string diagnostics;
};

/// The path of a library that is installed with this program.
std::string libraryPath(const std::string &name);

/// The path of the compiler: a library that belongs to this program. Loading it
/// takes longer than many runs, so it is loaded on demand.
std::string compilerPath();

constexpr int exitWithoutCompiler = 9;

/// Compiles a model file. `exitWithoutCompiler`, with an error, if there is no
/// compiler.
CompileOutcome compileInput(const CompileRequest &request);

} // namespace shardc::run

/// The export of the library at `compilerPath`. Program and library are built
/// together.
extern "C" void shardcCompileInput(const shardc::run::CompileRequest &request,
                                   shardc::run::CompileOutcome &outcome);

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H
