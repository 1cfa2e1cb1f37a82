//===- Recording.h - The spans of a trace -----------------------*- C++ -*-===//
//
// While a program runs, each worker notes three times for each step, in a ring
// of its own, without locks. On GPUs streams are the workers, and events
// between their commands have the times. All that can be known of a step before
// is described once: a `TracedStep`.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_TRACE_RECORDING_H
#define SHARDC_RT_SRC_TRACE_RECORDING_H

#include "base/Mesh.h"
#include "shardc-rt/Trace.h"

#include <atomic>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace shardc::rt {

/// A step of a prepared program, which is a command or a piece of one.
struct TracedStep {
  enum class Kind { Compute, Communication, Loop };

  Kind kind = Kind::Compute;
  std::string name;   ///< "gemm 32x128x64", "all_reduce over data".
  std::string part;   ///< "forward", "backward" or "update".
  std::string source; ///< "file:line:column" in the model; may be empty.
  std::string shapes; ///< "f32[32,64], f32[64,128] -> f32[32,128]".
  std::string task;   ///< Of a pipeline: "F2 of stage 1"; else empty.
  /// In one run, of all of its calls.
  uint64_t bytes = 0; ///< Read and written.
  double flops = 0;   ///< Of GEMMs.
  /// Sent, of each device of the ranks that send.
  uint64_t wireBytes = 0;
  /// The devices that hold what it computes, by call, each of as many tasks;
  /// one entry if all calls serve all of these.
  std::vector<std::vector<int64_t>> devices;
  int64_t tasksPerCall = 1;
  bool needsBarrier = false;
  /// Of a GPU: the steps that it waits for, and their runs of the loop.
  std::vector<std::pair<uint32_t, int32_t>> after;
  /// Of the last step of a collective: those at whose begin it starts and its
  /// wait begins, which may be itself. Else negative.
  int64_t startedAt = -1, waitedAt = -1;
  /// Whether messages of the collective are on their way from its start on.
  /// Within a process all is done at the wait.
  bool isEarly = false;
  /// Bytes of a device's arena that hold values, with a pipeline of the step's
  /// rank: the most until the next step.
  uint64_t arenaBytes = 0;
  int rank = -1; ///< Of the pipeline; negative: there is none.

  bool endsCollective() const { return startedAt >= 0; }
};

/// A prepared program.
struct TracedProgram {
  std::string name;
  std::vector<TracedStep> steps;
  int64_t spansPerRun = 0; ///< Of a worker.
  /// Sent in a run, on all ranks of a pipeline, without a step: sender and
  /// receiver have it in one place.
  uint64_t sharedWireBytes = 0;
};

/// A step on a worker, in nanoseconds of `Trace::Clock`.
struct StepSpan {
  uint32_t program, step;
  int32_t run;                ///< Of programs, from 0.
  int32_t loop;               ///< The run of the loop that the step is in.
  int32_t firstTask, endTask; ///< Of the step, those of this worker.
  int64_t arrived; ///< At the barrier before the step, if there is one.
  int64_t begin, end;

  bool hasTasks() const { return firstTask < endTask; }
};

/// A worker thread, or a stream of a GPU.
struct TracedWorker {
  std::string name; ///< "worker 0".
  /// Of the mesh, that a stream is for; empty: a thread, which is for all.
  std::vector<int64_t> devices = {};
  /// A stream that communicates or copies, beside those that compute.
  bool isBeside = false;

  bool isStream() const { return !devices.empty(); }
};

/// The latest spans of one worker.
class SpanRing {
public:
  explicit SpanRing(size_t capacity) : spans(capacity) {}

  void add(const StepSpan &span) {
    spans[next] = span;
    if (++next == spans.size())
      next = 0;
    ++added;
  }

  uint64_t numLost() const {
    return added > spans.size() ? added - spans.size() : 0;
  }
  /// In the order in which they were added.
  std::vector<StepSpan> inOrder() const;

private:
  std::vector<StepSpan> spans;
  size_t next = 0;
  uint64_t added = 0;
};

/// A run of a program.
struct TracedRun {
  uint32_t program;
  int64_t step; ///< Of "train_step" its number; else negative.
  int64_t begin, end;
  bool failed = false;
};

/// A span of the host.
struct HostSpan {
  std::string track, name;
  int64_t begin, end;
};

/// The recording of one executor, and of the host beside it.
struct Trace::State {
  explicit State(const TraceOptions &options) : options(options) {}

  static int64_t now() {
    return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  /// Takes the programs, the workers and the mesh of an executor. Once: a trace
  /// is of one executor.
  [[nodiscard]] absl::Status open(std::vector<TracedProgram> programs,
                                  std::vector<TracedWorker> workers,
                                  const Mesh &mesh);
  /// The number of a run that begins.
  int32_t beginRun(uint32_t program);
  void endRun(int32_t run, bool failed) {
    runs[run].end = now();
    runs[run].failed = failed;
  }

  const TraceOptions options;
  std::atomic<bool> isRecording{false};
  /// When recording first began, and when it last ended.
  std::atomic<int64_t> from{std::numeric_limits<int64_t>::max()};
  std::atomic<int64_t> to{std::numeric_limits<int64_t>::max()};
  /// What the trace says of the plan that it is of: a JSON object.
  std::string plan = "{}";
  std::vector<TracedProgram> programs;
  std::vector<TracedWorker> lanes; ///< By worker.
  std::vector<SpanRing> workers;
  std::vector<TracedRun> runs;
  /// "data=1,model=0" by device of the mesh.
  std::vector<std::string> devices;
  int64_t trainSteps = 0;

  mutable std::mutex hostMutex;
  std::vector<HostSpan> host;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRACE_RECORDING_H
