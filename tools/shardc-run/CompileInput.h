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
};

struct CompileOutcome {
  int exitCode = 0;
  /// The bytes of a plan if `exitCode` is 0.
  std::string plan;
  /// Errors and remarks for the user.
  std::string diagnostics;
};

/// Compiles a model file. A shardc-run that was built without the compiler says
/// so and returns exit code 9.
CompileOutcome compileInput(const CompileRequest &request);

/// Whether this shardc-run can compile.
bool hasCompiler();

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPILEINPUT_H
