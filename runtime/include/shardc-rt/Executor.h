//===- Executor.h - Runs a plan on devices ----------------------*- C++ -*-===//
//
// One arena per device, of exactly the bytes that the plan states, and the
// plan's programs made ready to run. Not thread-safe: one call at a time.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_EXECUTOR_H
#define SHARDC_RT_EXECUTOR_H

#include "shardc-rt/Context.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Plan.h"

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardc::rt {

struct ExecutorOptions {
  /// Of initial values and dropout.
  uint64_t seed = 0;
  /// Fill arenas and padding with NaN (all bits set), so that a computation
  /// that reads padding shows.
  bool poisonPadding = false;
  /// Virtual CPU devices that hold the same bits share one copy of them, and
  /// compute it once; a sum over devices is computed where it is wanted. With
  /// false each device has memory of its own and does all of its work. Bits may
  /// differ by the order of additions.
  bool shareReplicas = true;
  /// Whose code of a plan for CPUs is run: "x86-64-v3", for example. Empty: the
  /// one for the most that this CPU has. All compute the same bits.
  std::string cpuTarget;
};

/// What one run of a program gave.
struct RunResult {
  /// Global arrays by the name of the result.
  std::vector<std::pair<std::string, HostArray>> results;
  /// Of the result "loss"; NaN if the program has none.
  double loss = std::numeric_limits<double>::quiet_NaN();
  /// Bytes that the collectives sent, counted as they ran: logical, per
  /// device, the maximum over devices, on padded sizes.
  uint64_t wireBytes = 0;
  double seconds = 0;              ///< From submitting to the results.
  double communicationSeconds = 0; ///< NaN on GPUs: not measured.

  /// Adds a result, and notes it if it is the loss.
  void add(const std::string &name, HostArray array);

  /// The result `name`, or null.
  const HostArray *find(absl::string_view name) const;
};

/// Inputs and labels by name: global arrays, borrowed for the call.
using NamedArrays = std::map<std::string, ArrayView>;

/// What runs a plan. `create` makes one of virtual CPU devices;
/// shardc-rt/Cuda.h has the one of GPUs.
class Executor {
public:
  /// ResourceExhausted if an arena cannot be allocated, DataLoss if the plan's
  /// machine code does not load. The context must outlive the executor.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Executor>>
  create(Context &context, std::shared_ptr<const Plan> plan,
         ExecutorOptions options = {});
  virtual ~Executor() = default;
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  virtual const Plan &plan() const = 0;

  /// Bytes of each device: the plan's `arenaBytes`.
  virtual uint64_t allocatedBytesPerDevice() const = 0;

  /// Bytes allocated for all devices together; fewer than those of each added
  /// up where replicas share memory.
  virtual uint64_t allocatedBytes() const {
    return plan().numDevices() * allocatedBytesPerDevice();
  }

  /// Bytes that a device has beside its arena, which the plan does not know of:
  /// scratch memory of libraries. 0 on CPUs.
  virtual uint64_t scratchBytesPerDevice() const { return 0; }

  /// Gives parameters and states their initial values.
  [[nodiscard]] virtual absl::Status initializeParameters() = 0;

  /// Replaces a tensor on all devices by its shards of a global array.
  /// NotFound: no such tensor. InvalidArgument: another type or shape, or a
  /// copy of a parameter, which follows that by itself.
  [[nodiscard]] virtual absl::Status setTensor(absl::string_view name,
                                               ArrayView array) = 0;

  /// The global array of a tensor, put together from its shards. Errors as of
  /// `setTensor`.
  [[nodiscard]] virtual absl::StatusOr<HostArray>
  getTensor(absl::string_view name) const = 0;

  /// Begins a run of a program on one batch, of which it keeps no reference.
  /// Runs begin and end in order. InvalidArgument names the input that is
  /// missing, unknown, or of another type or shape, or says that the program is
  /// not for users to run. FailedPrecondition: `maxInFlight` runs have not been
  /// awaited.
  [[nodiscard]] virtual absl::Status submit(absl::string_view program,
                                            const NamedArrays &inputs) = 0;

  /// Waits for the oldest run that has not been awaited. FailedPrecondition:
  /// there is none.
  [[nodiscard]] virtual absl::StatusOr<RunResult> await() = 0;

  /// Runs submitted and not awaited, and how many there may be. On CPUs a run
  /// is over when it has been submitted, and there is one at most; GPUs work on
  /// one batch while the host prepares the next.
  virtual int inFlight() const = 0;
  virtual int maxInFlight() const = 0;

  /// Runs a program on one batch: `submit`, then `await`. FailedPrecondition:
  /// another run is in flight.
  [[nodiscard]] absl::StatusOr<RunResult> run(absl::string_view program,
                                              const NamedArrays &inputs);

  /// run("train_step", inputs): updates parameters and states; the loss is that
  /// of the batch before the update.
  [[nodiscard]] absl::StatusOr<RunResult> step(const NamedArrays &inputs) {
    return run("train_step", inputs);
  }

protected:
  Executor() = default;
};

} // namespace shardc::rt

#endif // SHARDC_RT_EXECUTOR_H
