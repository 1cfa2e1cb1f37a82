//===- CompileInput.h - A plan from a model file ----------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H

#include "shardc/Pipelines/CompileOptions.h"

#include <string>

namespace shardc::run {

struct CompileRequest {
  std::string path;
  CompileOptions options;
};

struct CompileOutcome {
  int exitCode = 0;
  /// The bytes of a plan if `exitCode` is 0.
  std::string plan;
  /// Errors and remarks for the user.
  std::string diagnostics;
};

/// Where the compiler is: a library that belongs to this program. Loading it
/// takes longer than many runs, so it is loaded when something is compiled.
std::string compilerPath();

/// Compiles a model file. Where there is no compiler it says so and returns
/// exit code 9.
CompileOutcome compileInput(const CompileRequest &request);

} // namespace shardc::run

/// What the library at `compilerPath` exports. Program and library are built
/// together.
extern "C" void shardcCompileInput(const shardc::run::CompileRequest &request,
                                   shardc::run::CompileOutcome &outcome);

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H
