//===- TraceRecorder.h - Records runs on GPUs in a trace --------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_TRACERECORDER_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_TRACERECORDER_H

#include "backends/cuda/Program.h"

namespace shardc::rt::cuda {

/// The programs of an executor with events between their commands, and what
/// aligns the clocks of GPUs to that of the host. Runs of two batches may be in
/// flight. Not thread-safe.
class TraceRecorder {
public:
  /// For runs of `programs` with inputs and results in `batches`; captures
  /// them, unless each command is waited for. All are borrowed.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<TraceRecorder>>
  create(const DeviceSet &set,
         const std::vector<std::unique_ptr<Program>> &programs,
         std::vector<const BatchMemory *> batches, bool isCaptured,
         const std::string &plan, Trace &trace);

  Trace &trace() const { return *to; }

  /// Whether the clocks of the GPUs should be read again before the next run,
  /// since the last time is long ago.
  bool needsClocks() const;
  /// Reads them. Nothing is in flight: other work may be in front of an event
  /// on any stream.
  [[nodiscard]] absl::Status readClocks(absl::Duration deadline);

  /// A run of `order`, whose last program gives it its name, begins: returns
  /// its number.
  int32_t begin(absl::Span<const size_t> order) {
    return to->internals().beginRun(order.back());
  }
  /// By GPU, to be launched in place of those without events.
  const std::vector<Graph> &graphs(size_t batch, size_t program) const {
    return batches[batch].graphs[program];
  }
  CommandTimes &times(size_t batch, size_t program) {
    return batches[batch].times[program];
  }
  /// The run has ended on all GPUs.
  [[nodiscard]] absl::Status end(size_t batch, absl::Span<const size_t> order,
                                 int32_t run);
  /// The run has failed; `isFirst`: those behind it never began.
  void fail(int32_t run, bool isFirst);

private:
  /// A point in the time of a GPU, and on the host's clock.
  struct Anchor {
    Event event;
    int64_t time;
  };
  struct Batch {
    std::vector<CommandTimes> times;        ///< By program.
    std::vector<std::vector<Graph>> graphs; ///< By program, then GPU.
  };

  TraceRecorder(const DeviceSet &set, Trace &trace)
      : set(set), to(&trace), streams(set.gpus, set.devices),
        ends(set.gpus.size()) {}

  absl::Status addBatch(const BatchMemory &memory,
                        const std::vector<std::unique_ptr<Program>> &programs,
                        bool isCaptured);
  absl::Status readClock(size_t gpu, absl::Duration deadline);

  const DeviceSet &set;
  Trace *to;
  const TracedStreams streams;
  std::vector<Stream> clocks;  ///< By GPU, for anchors.
  std::vector<Anchor> anchors; ///< By GPU.
  std::vector<Batch> batches;
  std::vector<int64_t> ends; ///< By GPU, of its latest run.
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_TRACERECORDER_H
