//===- Trace.h - A record of what ran, and when -----------------*- C++ -*-===//
//
// A trace has the spans of time that workers, virtual devices, collectives and
// the host spent on the steps that it records. It is written in the Chrome
// trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing
// show. docs/Traces.md describes tracks and arguments.
//
// Thread-safety: `add` may be called from any thread, the others from that of
// the executor's calls.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TRACE_H
#define SHARDC_RT_TRACE_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/Export.h"

#include "absl/strings/string_view.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace shardc::rt {

class Processes;
class Store;

struct TraceOptions {
  /// The number of runs that are recorded, for which memory is taken before the
  /// first one.
  int64_t runs = 1;
  /// The most of it, in bytes per worker. Once it is full the latest spans
  /// replace the oldest, and the trace says how many.
  uint64_t bytesPerWorker = 64 << 20;
  /// The number of the first run of "train_step" that is recorded.
  int64_t firstStep = 1;
};

class SHARDC_RT_API Trace {
public:
  using Clock = std::chrono::steady_clock;

  explicit Trace(const TraceOptions &options = {});
  ~Trace();
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  /// Whether runs that follow are recorded. At first they are not.
  void setRecording(bool on);
  bool isRecording() const;

  /// Adds a span of the host to the track `track`, "data" for example, if
  /// something was recorded during it.
  void add(absl::string_view track, absl::string_view name,
           Clock::time_point begin, Clock::time_point end);

  /// The runs of programs recorded so far, and the spans that were replaced.
  int64_t numRuns() const;
  uint64_t numLost() const;

  /// Writes the trace as JSON, compressed if `path` ends in ".gz". With
  /// `processes` all of them call it, and the first one writes what all have,
  /// on its clock. InvalidArgument or ResourceExhausted: the file cannot be
  /// written. Errors of the connection as of an executor.
  [[nodiscard]] absl::Status write(const std::string &path,
                                   Processes *processes = nullptr) const;
  /// The same for processes that have a store alone, as with GPUs.
  [[nodiscard]] absl::Status write(const std::string &path, Store &store) const;

  struct State;
  /// For the runtime itself.
  State &internals() const { return *state; }

private:
  std::unique_ptr<State> state;
};

} // namespace shardc::rt

#endif // SHARDC_RT_TRACE_H
