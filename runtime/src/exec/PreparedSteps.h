//===- PreparedSteps.h - The steps of a prepared program --------*- C++ -*-===//
//
// What a program is once its addresses are known: steps, which all workers go
// through at the same time. `prepareSteps` makes them, `PreparedProgram` runs
// them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PREPAREDSTEPS_H
#define SHARDC_RT_SRC_EXEC_PREPAREDSTEPS_H

#include "backends/cpu/ColumnSums.h"
#include "backends/cpu/Gemm.h"
#include "base/Memory.h"
#include "collectives/Collectives.h"
#include "exec/ArenaLayout.h"
#include "exec/KernelLibrary.h"
#include "exec/RemoteMessages.h"
#include "plan/CheckPipeline.h"
#include "plan/PlanSpec.h"

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

/// What all workers do together, or a loop of it.
struct Step {
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
  /// Bytes [begin, end) of an operand.
  struct Bytes {
    uint64_t begin = 0, end = 0;
  };
  /// The next `extent` iterations of a kernel, with those of the command's part
  /// that they are.
  struct Part {
    int64_t extent;
    /// By operand what one iteration touches, as in `LaunchPart`; 0: any of it;
    /// none: it touches nothing.
    std::vector<std::optional<uint64_t>> bytesPerIteration;
  };

  enum class Kind {
    Launch,
    Pack,
    Gemm,
    ColumnSums,
    Copy,
    Clear,
    Collective,
    StartMessages,
    FinishMessages,
    Loop
  } kind;
  /// Whether there is a barrier before it.
  bool needsBarrier = false;
  /// The share that has its task, if it is one.
  int ownerOfOne = 0;
  std::vector<Call> calls;
  /// Each call is this many tasks, its tiles.
  int64_t tiles = 1;
  /// Of each so many neighbouring calls, the first tiles are the first tasks,
  /// in the order of calls, then come their second ones; divides their number.
  int64_t together = 1;
  /// Buffer addresses, `operands` for every call: those of the command; of a
  /// GEMM the factors of all its terms, the result, the bias, the pieces of
  /// factors and the packed factor; where one is packed, it, its pieces and its
  /// place. That of a factor in pieces is the address of a list of theirs.
  std::vector<void *> table;
  int64_t operands = 0;
  /// By operand.
  std::vector<Access> accesses;
  /// By operand the bytes that each run moves it on; empty if none moves.
  std::vector<uint64_t> strides;

  KernelFunction kernel = nullptr;
  /// Devices of a call of the kernel; it has the operands of one after the
  /// other, then their results, or one, if it adds these up.
  int64_t group = 1;
  bool addsUp = false;
  /// Iterations [first, last), those of `parts`.
  int64_t first = 0, last = 1, grain = 1;
  std::vector<Part> parts;
  std::shared_ptr<const PreparedGemm> gemm;
  /// Adds the second and further terms of a sum, if `gemm` does not.
  std::shared_ptr<const PreparedGemm> addTerm;
  int64_t round = 0; ///< Of the GEMM.
  bool hasBias = false;
  int64_t pieces = 0; ///< How many there are in a GEMM's operands.
  /// Whether the last address is that of a packed factor, at first relative
  /// to the memory for them.
  bool hasPacked = false;
  std::optional<ColumnSums> columnSums;
  uint64_t bytes = 0;
  /// Of a collective, one for all runs of a loop or one for each.
  std::vector<PreparedCollective *> collectives;
  RemoteMessages *messages = nullptr;
  /// Bytes that each device of the ranks `senders` sends; of a collective of
  /// several steps the last one has them.
  uint64_t wireBytes = 0;
  absl::InlinedVector<int, 1> senders;
  /// Of a kernel of a task: by call its context, with the microbatch.
  std::vector<int64_t> contexts;
  /// The collective in words, with its place in the model.
  std::string what;
  /// The command that it is of, on pipeline rank `rank`.
  int rank = 0;
  uint32_t command = 0;
  /// Of the last step of a collective: those before which it starts and its
  /// wait begins, which may be itself. Else negative.
  int64_t startedAt = -1, waitedAt = -1;
  /// One device for every copy of the results: those of each call, or of all
  /// calls together. Of local steps but those of messages.
  std::vector<int64_t> devices;
  double flops = 0; ///< Of a GEMM, of all calls.
  /// The clock of its task or message; negative: none.
  int clock = -1;
  /// Of a loop, whose body is the next `length` steps.
  int64_t runs = 1;
  size_t length = 0;

  /// Whether it is made of calls.
  bool isLocal() const {
    return kind != Kind::Collective && kind != Kind::Loop;
  }
  bool endsCollective() const { return startedAt >= 0; }
  /// Copies of the results that a call of the kernel computes.
  int64_t resultsPerCall() const { return addsUp ? 1 : group; }
  int64_t numTasks() const { return calls.size() * tiles; }
  /// Calls `visit(call, begin, end)` for the tiles [begin, end) of each call
  /// that are among the tasks [begin, end).
  template <typename Visit>
  void forEachCall(int64_t begin, int64_t end, Visit visit) const;
  /// What tiles [begin, end) of a call touch of an operand in one run, or more.
  Bytes bytesOf(int64_t operand, int64_t beginTile, int64_t endTile) const;
};

template <typename Visit>
void Step::forEachCall(int64_t begin, int64_t end, Visit visit) const {
  // Without a division, which small steps would notice.
  if (calls.size() == 1)
    return visit(int64_t(0), begin, end);
  const int64_t ofGroup = together * tiles;
  int64_t group = begin / ofGroup;
  for (int64_t first = group * ofGroup; first < end; first += ofGroup) {
    const int64_t low = std::max<int64_t>(begin - first, 0),
                  high = std::min(end - first, ofGroup);
    if (together == 1)
      visit(group, low, high);
    for (int64_t call = 0; call < together && together > 1; ++call) {
      // Its tile t is task t * together + call.
      const int64_t lowTile = (low + together - 1 - call) / together,
                    highTile = (high + together - 1 - call) / together;
      if (lowTile < highTile)
        visit(group * together + call, lowTile, highTile);
    }
    ++group;
  }
}

/// The steps of one program, and what belongs to them.
struct PreparedSteps {
  /// One for all runs of a loop, or one for each where operands move.
  using OfCollective = std::vector<std::unique_ptr<PreparedCollective>>;

  std::vector<Step> steps;
  /// By rank and number of the command that starts the collective, on the first
  /// rank if several do.
  std::map<std::pair<int, uint32_t>, OfCollective> collectives;
  /// An array that steps read where the caller of a run has it
  /// (InputsInPlace.h).
  struct Input {
    size_t tensor; ///< In the plan.
    uint64_t bytes;
    /// Stands for the array until there is one, and for one that lies at no
    /// multiple of its elements' size.
    Memory memory = {};
    const char *array = nullptr; ///< The one that steps read.
    /// Where steps have an address in it.
    struct Place {
      size_t step, entry; ///< Of the step's table.
      uint64_t offset;    ///< In the array.
    };
    std::vector<Place> places = {};
  };
  std::vector<Input> inputs;
  uint64_t packedBytes = 0; ///< For packed factors of GEMMs.
  /// Addresses of the pieces of factors, by factor; each list stays in place.
  std::vector<std::vector<void *>> pieces;
  /// Messages to other processes, by rank and the command that starts them.
  std::map<std::pair<int, uint32_t>, RemoteMessages> messages;
  /// By rank: bytes that each device sends without a step of this process.
  std::vector<uint64_t> sharedBytes;
  /// With a pipeline: by rank the clock of its first task, then that of message
  /// 0, then their number.
  std::vector<int> clocks;
};

/// The steps of program number `program` of `plan`, whose ranks have the
/// devices `ranks`, for those that this process has, with GEMMs by `kernels`;
/// packed factors have places relative to the memory for them. Without a
/// pipeline commands run in the order of the list: of a collective what its
/// backend does early at its start, and the rest at its wait. With one they run
/// in the rounds of `order`, which between several processes has remote steps.
/// Errors are those of the backend, with the number of the command.
absl::StatusOr<PreparedSteps>
prepareSteps(const PlanSpec &plan, absl::Span<const DeviceSet> ranks,
             size_t program, const PipelineOrder *order, Collectives &backend,
             const DeviceProcesses &processes, const MicroKernels &kernels);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PREPAREDSTEPS_H
