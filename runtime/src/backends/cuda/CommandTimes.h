//===- CommandTimes.h - When the commands of a program ran ------*- C++ -*-===//
//
// Where a program is traced, events are recorded between its commands, on the
// streams that these are issued to, and into the graphs in which they are
// captured: so a traced run is launched as any other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_COMMANDTIMES_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_COMMANDTIMES_H

#include "backends/cuda/Device.h"
#include "trace/Recording.h"

#include <map>

namespace shardc::rt::cuda {

/// The streams of the devices of a process, each once, as the workers of a
/// trace. Those that compute come first.
class TracedStreams {
public:
  TracedStreams(const std::vector<std::unique_ptr<Gpu>> &gpus,
                const std::vector<Device> &devices);

  /// What a trace calls them.
  std::vector<TracedWorker> describe() const;
  size_t size() const { return all.size(); }
  /// The number of a stream, and that of its GPU.
  size_t numberOf(const Stream &stream) const { return numbers.at(&stream); }
  size_t gpuOf(size_t stream) const { return all[stream].gpu; }

private:
  struct One {
    size_t gpu;
    rt::Stream kind;
    std::vector<int64_t> devices; ///< Of the mesh.
  };
  std::vector<One> all;
  std::map<const Stream *, size_t> numbers;
};

/// Events for one program and one batch. Not thread-safe.
class CommandTimes {
public:
  /// `isCaptured`: the program is issued to a capture. The streams and `gpus`
  /// outlive it.
  CommandTimes(const TracedStreams &streams,
               const std::vector<std::unique_ptr<Gpu>> &gpus, bool isCaptured)
      : streams(streams), gpus(gpus), isCaptured(isCaptured),
        events(gpus.size()) {}

  /// Makes the events of a run with so many commands on a GPU's streams, before
  /// it is captured.
  [[nodiscard]] absl::Status reserve(size_t gpu, size_t commands);

  /// Calls of whoever issues the program, with the stream's GPU current: on the
  /// main stream of each GPU, before all other streams wait for it,
  [[nodiscard]] absl::Status beginRun(size_t gpu);
  /// before a command, behind all waits of the stream for others, if there are
  /// some,
  [[nodiscard]] absl::Status begin(const Stream &stream, bool hasWaited);
  /// behind it, with the position of the device among those that the step is
  /// issued for,
  [[nodiscard]] absl::Status end(const Stream &stream, uint32_t step,
                                 int32_t run, int32_t position);
  /// and on the main streams at the very end.
  [[nodiscard]] absl::Status endRun(size_t gpu);

  /// A run that has ended, in nanoseconds by GPU: its begin after `from`, an
  /// event on the GPU, and its duration.
  struct Times {
    int64_t begin = 0, duration = 0;
  };
  [[nodiscard]] absl::StatusOr<Times> timesOf(size_t gpu,
                                              const Event &from) const;
  /// Its spans, which begin at `begins` on the clock of the trace, by GPU.
  [[nodiscard]] absl::Status addSpans(uint32_t program, int32_t run,
                                      absl::Span<const int64_t> begins,
                                      std::vector<SpanRing> &spans) const;

private:
  struct Mark {
    size_t stream;
    uint32_t step;
    int32_t run, position;
    size_t arrived, begin, end; ///< Events of its GPU.
  };

  /// Records the next event of a GPU on one of its streams.
  absl::StatusOr<size_t> record(size_t gpu, const Stream &stream);

  const TracedStreams &streams;
  const std::vector<std::unique_ptr<Gpu>> &gpus;
  const bool isCaptured;
  /// By GPU; taken in the same order in each run.
  std::vector<std::vector<Event>> events;
  std::vector<size_t> used, last; ///< By GPU. The first of a run is number 0.
  std::vector<Mark> marks;
  /// By stream: its latest event, and the begin of the command that is issued.
  std::vector<size_t> latest, begun;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_COMMANDTIMES_H
