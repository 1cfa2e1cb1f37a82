//===- CompileInput.h - A plan from a model file ----------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H

#include <cstdint>
#include <string>

namespace shardc::run {

struct CompileRequest {
  std::string path;
  std::string mesh;
  std::string rules;
  /// Empty: the default.
  std::string target;
  /// Of estimates; empty: the default.
  std::string machine;
  /// Receives the IR after each phase; empty: none.
  std::string dumpDir;
  int64_t batchSize = 0;
  int64_t microbatches = 0;
  /// Most bytes of collectives merged into one; 0: no limit, negative: the
  /// default.
  int64_t bucketBytes = -1;
  /// Compile for one device: the unpartitioned program.
  bool singleDevice = false;
  /// Compare the partitioned program with the global one.
  bool verifyPartition = false;
  /// Empty: the default.
  std::string partition = "";
  std::string objective = "";
  /// Most bytes that the plan may need on a device; 0: no limit.
  int64_t deviceMemory = 0;
  /// Do not check contracts.
  bool ignoreExpectations = false;
  /// Gather weights again for the backward pass.
  bool regather = false;
  /// Of factors of products; empty: the default.
  std::string matmulPrecision = "";
  /// What a model of f32 computes in; empty: the types that it has.
  std::string dtype = "";
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
