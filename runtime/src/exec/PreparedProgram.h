//===- PreparedProgram.h - A program bound to its arenas --------*- C++ -*-===//
//
// A program is prepared once, when its plan is loaded: addresses of all
// buffers, kernels, GEMMs, collectives, the share of every worker, and the
// sections, each of which begins when all shares of the one before have ended.
// Running a step neither allocates nor looks anything up.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
#define SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H

#include "exec/Barriers.h"
#include "exec/PreparedSteps.h"
#include "exec/WorkerPool.h"
#include "trace/Recording.h"

#include <atomic>
#include <chrono>
#include <mutex>

namespace shardc::rt {

class PreparedProgram {
public:
  /// Prepares program number `program` of `plan`, whose ranks have the devices
  /// `ranks`, for `workers` workers, with GEMMs by `kernels`; `bindPacked`
  /// follows. Without a pipeline commands run in the order of the list, with
  /// one in the rounds of `order`, or in its sequence if workers share no step,
  /// and between several processes, which need one order. All must outlive the
  /// program, but for `order` and `processes`. Errors: `prepareSteps`.
  static absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(const PlanSpec &plan, absl::Span<const DeviceSet> ranks,
          size_t program, const PipelineOrder *order, Collectives &collectives,
          const DeviceProcesses &processes, const MicroKernels &kernels,
          int workers);

  /// Bytes that it needs besides for packed factors of GEMMs.
  uint64_t packedBytes() const { return prepared.packedBytes; }
  /// Gives it memory for them, aligned to 64 bytes, which other programs may
  /// use between its runs. Once, before the first run.
  void bindPacked(char *memory);

  /// Has the next runs read tensor number `tensor`, of elements of `width`
  /// bytes, in `array`. Returns false if they read it in the arena instead.
  bool readInPlace(size_t tensor, const void *array, int64_t width);

  struct Counters {
    explicit Counters(const PlanSpec &plan) : wireBytes(plan.ranks().size()) {}

    std::vector<uint64_t> wireBytes; ///< By rank, of each of its devices.
    double communicationSeconds = 0;
    bool communicates = false; ///< Now, since the time below.
    std::chrono::steady_clock::time_point communicationStart;

    /// Notes that share 0 begins to communicate, or ends. It is measured from
    /// the first of neighbouring collectives and transfers to the last.
    void setCommunicating(bool now);
    /// Measure the durations of tasks and messages: then each step is a
    /// section.
    bool measures = false;
    /// By clock (`PreparedProgram::timesOf`) the seconds that it ran.
    std::vector<double> clockSeconds;
    int clock = -1; ///< The one that runs; negative: none.
    std::chrono::steady_clock::time_point clockStart;
    /// Where the spans of the run are recorded; null: nowhere.
    Trace::State *trace = nullptr;
    int32_t tracedRun = 0;

    /// Stops the clock that runs, and starts another one.
    void startClock(int next);
  };

  /// The durations of one run with a pipeline that was measured: of a task the
  /// time in which all workers work on it, of a message that of its copies:
  /// none where sender and receiver share a place.
  PipelineTimes timesOf(const Counters &counters) const;

  /// The steps, as a trace shows them.
  TracedProgram describe(const PlanSpec &plan) const;

  /// The step that the share furthest behind is in, "kernel_2 (forward,
  /// model.mlir:18:13)"; from any thread, while `pool` runs the program.
  std::string describeProgress(const PlanSpec &plan,
                               const WorkerPool &pool) const;

  /// Runs the program. Errors: `takeError`.
  void run(WorkerPool &pool, Counters &counters);

  /// Returns and clears the first error since the last call; with several
  /// processes it stays. After an error nothing is written: other processes may
  /// still read what they have been promised.
  absl::Status takeError();

private:
  /// Parts of one call, [begin, end).
  struct TileRange {
    int64_t begin, end;
  };

  /// The steps [begin, end), in which no share needs what another one writes.
  struct Section {
    size_t begin, end;
    /// Of the last one of a loop's body: the number of the first one, and the
    /// runs of the loop; else 0.
    size_t first = 0;
    int64_t runs = 0;
  };

  /// The tasks of a step that a share has, cut into chunks.
  struct Portion {
    TaskRange tasks{0, 0, 1};
    int64_t tasksPerChunk = 1;
    int chunks = 0;
  };

  /// A run of the program.
  class Run;

  PreparedProgram(PreparedSteps prepared, absl::Span<const DeviceSet> ranks,
                  size_t number, Transport *transport, int workers)
      : prepared(std::move(prepared)), ranks(ranks), number(number),
        transport(transport), workers(workers) {}

  /// Whether a step is of several tasks; with a pipeline, which has no loops.
  bool isShared() const;
  void placeBarriers();
  /// Whether a step accesses no bytes but those that `noteAccesses` notes.
  bool knowsAccesses(const Step &step) const;
  /// Notes what a share accesses in a step, in `runs` runs of a loop.
  void noteAccesses(const Step &step, int share, int64_t runs,
                    Barriers &barriers) const;
  /// Gives the one task of a step to the share with the least to do of those
  /// that need no barrier for it; to share 0 if all do.
  void chooseOwner(Step &step, int64_t runs, absl::Span<const double> seconds,
                   Barriers &barriers) const;
  /// All of a step, in run `run` of the loop around it.
  static int64_t tasksIn(const Step &step, int64_t run);
  TaskRange tasksOf(const Step &step, int64_t all, int share) const;
  /// About how long a worker takes for all tasks of a step.
  static double estimateSeconds(const Step &step);
  /// The sections between barriers, or one for each step.
  std::vector<Section> findSections(bool ofEachStep) const;
  /// Tasks of a step that are worth to be taken alone: some microseconds.
  int64_t tasksWorthTaking(const Step &step) const;

  void runLocal(const Step &step, int64_t run, TaskRange tasks,
                bool movesMessages);
  void runCall(const Step &step, const Step::Call &call, int64_t run,
               TileRange tiles);
  void runGemm(const Step &step, void *const *table, int64_t tile);
  void runCollective(const Step &step, int64_t run, TaskRange tasks);
  void note(const absl::Status &status);
  /// What a share has of step `number` in run `run` of the loop around it.
  Portion portionOf(size_t number, int64_t run, int share) const;

  PreparedSteps prepared;
  absl::Span<const DeviceSet> ranks;
  size_t number;        ///< In the plan.
  Transport *transport; ///< Null: there is one process.
  int workers;

  std::vector<Section> sections, sectionsOfSteps;
  std::vector<Portion> portions; ///< By step and share, of run 0.

  std::mutex errorMutex;
  absl::Status error;
  std::atomic<bool> hasError{false};
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
