//===- RunTrace.h - The trace of a run, beside its plan ---------*- C++ -*-===//
//
// Reads what `shardc-run --trace` writes (docs/Traces.md) for reports that lay
// it over the estimates. Thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_RUNTRACE_H
#define SHARDC_REPORT_RUNTRACE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardc {

/// A span of a worker.
struct RunSpan {
  enum class Kind { Compute, Communication, Wait };

  Kind kind = Kind::Compute;
  /// "all_reduce over data", "gemm 32x128x64"; of a wait what it is for.
  std::string name;
  /// Place in the model, "forward", "backward" or "update", and of a pipeline
  /// "F2 of stage 1"; empty for waits.
  std::string source, part, task;
  /// Index into `RunTrace::workers`.
  size_t worker = 0;
  /// From the begin of the step.
  double startMicroseconds = 0, microseconds = 0;
};

/// A train step.
struct RunStep {
  /// "step 10".
  std::string name;
  double microseconds = 0;
  /// In time order by worker.
  std::vector<RunSpan> spans;
};

/// The train steps of a trace that ended, of all processes.
struct RunTrace {
  /// What the trace says of its plan, under the names of the JSON report.
  llvm::json::Object plan;
  /// "worker 0", or with several processes "rank 1 on host, worker 0". Of GPUs
  /// "stream of device 0: compute", without those that copy inputs and results.
  std::vector<std::string> workers;
  /// Those that communicate beside others; without their waits.
  std::vector<bool> isBeside;
  /// In the order in which they ran, without those that took more than twice
  /// their median, which other work has interrupted. At least one.
  std::vector<RunStep> steps;
  int64_t numSlow = 0;
  /// What was too much for the memory of the trace, in its words; may be empty.
  std::string lost;

  /// Of `steps`, the upper one if there are two.
  const RunStep &getMedian() const;
  /// On average.
  double getStepMicroseconds() const;
  /// The workers that compute, or those that communicate beside them.
  size_t getNumWorkers(bool isBeside) const;
  bool isOfStreams() const { return getNumWorkers(/*isBeside=*/true) > 0; }
};

/// Reads a trace file, which may be compressed. Errors name it and say what was
/// expected.
llvm::Expected<RunTrace> readRunTrace(const std::string &path);

/// The difference between the plan of `trace` and that of `report`, what
/// `shardc-compile --json` prints, as an error; or "".
std::string checkPlanOf(const RunTrace &trace,
                        const llvm::json::Object &report);

} // namespace shardc

#endif // SHARDC_REPORT_RUNTRACE_H
