//===- PreparedProgram.h - A program bound to its arenas --------*- C++ -*-===//
//
// A program is prepared once, when its plan is loaded: addresses of all
// buffers, kernels, GEMMs, collectives, the share of every worker, and the
// barriers between them. Running a step neither allocates nor looks anything
// up.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
#define SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H

#include "backends/cpu/ColumnSums.h"
#include "backends/cpu/Gemm.h"
#include "backends/cpu/ReluMask.h"
#include "collectives/Collectives.h"
#include "exec/ArenaLayout.h"
#include "exec/Barriers.h"
#include "exec/KernelLibrary.h"
#include "exec/MergeGemms.h"
#include "exec/MessagePlaces.h"
#include "exec/WorkerPool.h"
#include "plan/CheckPipeline.h"
#include "plan/PlanSpec.h"

#include "absl/status/statusor.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace shardc::rt {

/// The virtual devices of a pipeline rank; without a pipeline all of an
/// executor, which are those of `layout`.
struct DeviceSet {
  const PlanSpec &plan; ///< Of the rank.
  const KernelLibrary &kernels;
  const ArenaLayout &layout;
  /// The memory of all devices, in the order of `layout`.
  char *memory;
  /// Kernel contexts: one row per device of coordinates, the seed, then the run
  /// of a loop (0).
  std::vector<int64_t> contexts;
  int64_t contextStride;
};

class PreparedProgram {
public:
  /// Prepares program number `program` of `plan`, whose ranks have the devices
  /// `ranks`, for `workers` workers; `bindPacked` follows. Without a pipeline
  /// commands run in the order of the list, a collective at its wait; with one
  /// in the rounds of `order`, or in its sequence if workers share no step. All
  /// must outlive the program, but for `order`. Errors are those of the
  /// backend, with the number of the command.
  static absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(const PlanSpec &plan, absl::Span<const DeviceSet> ranks,
          size_t program, const PipelineOrder *order, Collectives &collectives,
          int workers);

  /// Bytes that it needs besides for packed factors of GEMMs.
  uint64_t packedBytes() const { return packed; }
  /// Gives it memory for them, aligned to 64 bytes, which other programs may
  /// use between its runs. Once, before the first run.
  void bindPacked(char *memory);

  struct Counters {
    explicit Counters(const PlanSpec &plan) : wireBytes(plan.ranks().size()) {}

    std::vector<uint64_t> wireBytes; ///< By rank, of each of its devices.
    double communicationSeconds = 0;
    bool communicates = false; ///< Now, since the time below.
    std::chrono::steady_clock::time_point communicationStart;

    /// Notes that worker 0 begins to communicate, or ends. It is measured from
    /// the first of neighbouring collectives and transfers to the last.
    void setCommunicating(bool now);
    /// Measure the durations of tasks and messages: then all workers wait for
    /// one another before each step. The same for all workers.
    bool measures = false;
    /// By clock (`PreparedProgram::timesOf`) the seconds that it ran.
    std::vector<double> clockSeconds;
    int clock = -1; ///< The one that runs; negative: none.
    std::chrono::steady_clock::time_point clockStart;

    /// Stops the clock that runs, and starts another one.
    void startClock(int next);
  };

  /// The durations of one run with a pipeline that was measured: of a task the
  /// time in which all workers work on it, of a message that of its copies:
  /// none where sender and receiver share a place.
  PipelineTimes timesOf(const Counters &counters) const;

  /// Runs the share of worker `worker`; every worker of the pool calls it in
  /// one job. Worker 0 alone writes `counters`. Errors: `takeError`.
  void run(int worker, WorkerPool &pool, Counters &counters);

  /// Returns and clears the first error since the last call. After an error the
  /// run went on with undefined values.
  absl::Status takeError();

private:
  /// One for all runs of a loop, or one for each where operands move.
  using PreparedCollectives = std::vector<std::unique_ptr<PreparedCollective>>;

  /// One call of a kernel, copy, clear or GEMM: it computes one copy of the
  /// results, or many where GEMMs have been merged.
  struct Call {
    const int64_t *context; ///< Of a kernel.
    size_t buffers;         ///< Where its addresses start in the step's table.
  };

  /// The bytes of an operand that a call accesses in one run.
  struct Access {
    uint64_t bytes = 0;
    bool isWrite = false;
  };

  /// Parts of one call, [begin, end).
  struct TileRange {
    int64_t begin, end;
  };

  struct Step {
    enum class Kind {
      Launch,
      Pack,
      Gemm,
      WriteMask,
      ApplyMask,
      ColumnSums,
      Copy,
      Clear,
      Collective,
      Loop
    } kind;
    /// Whether there is a barrier before it.
    bool needsBarrier = false;
    std::vector<Call> calls;
    /// Each call is this many tasks.
    int64_t tiles = 1;
    /// Buffer addresses, `operands` for every call: those of the command; of a
    /// GEMM the factors of all its terms, the result, the bias and the packed
    /// factor; where one is packed, it and its place.
    std::vector<void *> table;
    int64_t operands = 0;
    /// By operand.
    std::vector<Access> accesses;
    /// By operand the bytes that each run moves it on; empty if none moves.
    std::vector<uint64_t> strides;

    KernelFunction kernel = nullptr;
    /// Iterations [first, last).
    int64_t first = 0, last = 1, grain = 1;
    std::shared_ptr<const PreparedGemm> gemm;
    /// Adds the second and further terms of a sum.
    std::shared_ptr<const PreparedGemm> addTerm;
    int64_t round = 0; ///< Of the GEMM.
    bool hasBias = false;
    /// Whether the last address is that of a packed factor, at first relative
    /// to the memory for them.
    bool hasPacked = false;
    std::optional<ReluMask> mask;
    std::optional<ColumnSums> columnSums;
    uint64_t bytes = 0;
    /// Of a collective, one for all runs of a loop or one for each.
    std::vector<PreparedCollective *> collectives;
    /// Bytes that each device of the ranks `senders` sends.
    uint64_t wireBytes = 0;
    absl::InlinedVector<int, 1> senders;
    /// Of a kernel of a task: by call its context, with the microbatch.
    std::vector<int64_t> contexts;
    /// The clock of its task or message; negative: none.
    int clock = -1;
    /// Of a loop, whose body is the next `length` steps.
    int64_t runs = 1;
    size_t length = 0;

    /// Whether it is made of calls.
    bool isLocal() const {
      return kind != Kind::Collective && kind != Kind::Loop;
    }
    int64_t numTasks() const { return calls.size() * tiles; }
  };

  /// The steps [begin, end) in run `run` of a loop.
  struct Range {
    size_t begin, end;
    int64_t run = 0;
  };

  PreparedProgram(const PlanSpec &plan, absl::Span<const DeviceSet> ranks,
                  size_t number, int workers)
      : plan(plan), ranks(ranks), number(number), workers(workers) {}

  const DeviceSet &devices() const { return ranks[rank]; }
  const ProgramSpec &program() const { return programOf(rank); }
  const ProgramSpec &programOf(int rank) const {
    return ranks[rank].plan.programs[number];
  }

  absl::Status addSteps(Collectives &backend);
  absl::Status addSteps(const PipelineOrder &order, Collectives &backend);
  absl::Status addSteps(const PipelineStep &together, Collectives &backend);
  void sortSteps(absl::Span<const std::pair<int64_t, size_t>> places);
  absl::Status addStep(uint32_t command, int64_t runs, Collectives &backend);
  void setMicrobatch(Step &step, int64_t microbatch) const;
  void addTransfer(RankCommand from, RankCommand to);
  absl::Status prepareCollective(const PipelineStep &starts, int64_t runs,
                                 Collectives &backend);
  void addCollective(const PipelineStep &starts);
  absl::Status named(const absl::Status &status, uint32_t command) const;
  void addGemm(uint32_t command, const GemmCommand &gemm);
  struct MergedGemms;
  void addMergedGemms(uint32_t command, const GemmCommand &gemm);
  void addPacking(const MergedGemms &gemms, size_t term, int64_t round);
  void addTiles(const MergedGemms &gemms, size_t firstTerm, size_t lastTerm,
                int64_t round);
  void addMask(const GemmCommand &gemm);
  void addColumnSums(const GemmCommand &gemm);
  void addLaunch(const LaunchCommand &launch);
  CollectiveSpec
  describeCollective(const CollectiveStartCommand &command) const;
  CollectiveSpec bindCollective(const PipelineStep &starts, int64_t run) const;
  const Mesh &meshOf(const PipelineStep &starts) const;
  char *address(int64_t device, uint32_t buffer, int64_t run = 0) const {
    return addressOn(rank, device, buffer, run);
  }
  char *addressOn(int rank, int64_t device, uint32_t buffer,
                  int64_t run = 0) const;
  /// Adds a call on `buffers` for every device that computes a copy of the
  /// results among `operands`.
  void bind(Step &step, const std::vector<Operand> &operands,
            const std::vector<uint32_t> &buffers) const;
  void setStrides(Step &step, const std::vector<uint32_t> &buffers) const;
  /// Whether a step is of several tasks; with a pipeline, which has no loops.
  bool isShared() const;
  void placeBarriers();

  void runRange(Range range, int worker, WorkerPool &pool, Counters &counters);
  void runLocal(const Step &step, int64_t run, int worker);
  void runCall(const Step &step, const Call &call, int64_t run,
               TileRange tiles);
  void runGemm(const Step &step, void *const *table, int64_t tile);
  void runCollective(const Step &step, int64_t run, int worker);
  void communicate(const Step &step, int64_t run, int worker,
                   Counters &counters);
  void note(const absl::Status &status);

  const PlanSpec &plan;
  absl::Span<const DeviceSet> ranks;
  size_t number;
  /// Of the command that is being prepared.
  int rank = 0;
  int workers;
  std::vector<Step> steps;
  /// With a pipeline, while it is prepared.
  std::optional<MessagePlaces> messagePlaces;
  /// By rank: bytes that each device sends where there is nothing to copy.
  std::vector<uint64_t> sharedBytes;
  uint64_t packed = 0; ///< Bytes for packed factors.
  /// Where those of the next GEMM begin: GEMMs of one round of a pipeline,
  /// which run together, have places of their own.
  uint64_t nextPacked = 0;
  /// With a pipeline: by rank the clock of its first task, then that of message
  /// 0, then their number.
  std::vector<int> clocks;
  /// By rank and number of the command that starts the collective, on the first
  /// rank if several do.
  std::map<std::pair<int, uint32_t>, PreparedCollectives> collectives;

  std::mutex errorMutex;
  absl::Status error;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
