//===- Executor.h - Runs a plan on devices ----------------------*- C++ -*-===//
//
// An executor has one arena per device, of exactly the bytes that the plan
// states, and the plan's programs made ready to run.
//
// Thread-safety: one call of an executor at a time, from any thread. Different
// executors may be used at the same time; those that share a Context take
// turns.
//
// Parameters and optimizer states have no value until `initializeParameters` or
// `setTensor` gives them one. As long as one of them has none, no program runs,
// and reading it is an error. An error of a run leaves them as follows:
//
//   - A run that is refused changes nothing: InvalidArgument, NotFound or
//     FailedPrecondition from `submit`.
//   - A run that fails midway may have updated some of them and not others. If
//     its program writes any ("train_step" does, "evaluate" does not), all lose
//     their values, and FailedPrecondition names the error that caused the
//     loss. On CPUs training continues after `initializeParameters`, or after
//     all parameters and states have been set.
//   - On GPUs an executor that has failed midway cannot recover: each further
//     call that runs, sets or reads something returns the first error. Make a
//     new executor and set its parameters and states.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_EXECUTOR_H
#define SHARDC_RT_EXECUTOR_H

#include "shardc-rt/Context.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Plan.h"

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardc::rt {

struct ShardPlace;

class Processes;
class Store;
class Trace;

struct ExecutorOptions {
  /// Of initial values and dropout.
  uint64_t seed = 0;
  /// Fill arenas and padding with NaN (all bits set), so that results show
  /// whether a computation read padding.
  bool poisonPadding = false;
  /// Virtual CPU devices that hold the same bits share one copy and compute it
  /// once, and a sum over devices is computed by its reader. With false each
  /// device has memory of its own and does all of its work. Bits may differ by
  /// the order of additions.
  bool shareReplicas = true;
  /// Add sums over devices in an order that the number of devices alone
  /// decides, as several processes do: the bits then do not depend on theirs.
  /// With false, in one process, GEMMs whose results only a sum over virtual
  /// CPU devices reads add up in another order, faster: as one GEMM where their
  /// factors follow one another in memory.
  bool orderedSums = false;
  /// The processes over which the virtual CPU devices of the mesh are spread;
  /// null: all are in this one. Borrowed for as long as the executor lives.
  Processes *processes = nullptr;
  /// The version of the kernels to run: "x86-64-v3", for example. Empty: the
  /// widest that this CPU supports. GEMMs use no wider vectors, either. All
  /// compute the same bits.
  std::string cpuTarget;
  /// Called now and then during the initialization of parameters and states,
  /// with the number of elements that are done and of all. Elements that other
  /// processes initialize may not count as done.
  std::function<void(int64_t done, int64_t elements)> onInitialize;
};

/// The results of one run of a program. A value: threads may share a constant
/// one.
struct SHARDC_RT_API RunResult {
  /// Global arrays by the name of the result.
  std::vector<std::pair<std::string, HostArray>> results;
  /// Of the result "loss"; NaN if the program has none.
  double loss = std::numeric_limits<double>::quiet_NaN();
  /// Bytes that collectives and sends sent, counted as they ran: logical, per
  /// device, the maximum over devices, on padded sizes.
  uint64_t wireBytes = 0;
  double seconds = 0;              ///< From submitting to the results.
  double communicationSeconds = 0; ///< NaN on GPUs: not measured.

  /// Adds a result, and notes it if it is the loss.
  void add(const std::string &name, HostArray array);

  /// The result `name`, or null.
  const HostArray *find(absl::string_view name) const;
};

/// The share of a pipeline's makespan in which ranks idle, and the makespan:
/// from the first task of a run to the end of the last. A simulation on one
/// clock per rank, each task as soon as the rank and its operands are there.
struct SHARDC_RT_API PipelineBubble {
  /// With the times that the plan has for tasks and transfers, estimated.
  double predicted = 0;
  double predictedSeconds = 0;
  /// With the measured durations: of a task on all threads of the context, as
  /// if each rank had as many, and of the copies that transfers are. Means of
  /// the second to the sixth run, or those of the only one.
  double measured = 0;
  double measuredSeconds = 0;
};

/// Inputs and labels by name: global arrays, borrowed for the call.
using NamedArrays = std::map<std::string, ArrayView>;

/// Rows [first, last) of a batch.
struct RowRange {
  int64_t first = 0, last = 0;
};

/// Runs a plan. `create` makes an executor of virtual CPU devices,
/// `createCudaExecutor` (shardc-rt/Cuda.h) one of GPUs.
class SHARDC_RT_API Executor {
public:
  /// ResourceExhausted: an arena cannot be allocated. DataLoss: the plan's
  /// machine code does not load. Unavailable: the plan is for GPUs, or this CPU
  /// cannot run the code that `options` ask for. InvalidArgument: the plan is
  /// null or has no such code, or processes have other plans or options, or
  /// are more than devices. The context must outlive the executor.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Executor>>
  create(Context &context, std::shared_ptr<const Plan> plan,
         ExecutorOptions options = {});
  virtual ~Executor() = default;
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  virtual const Plan &plan() const = 0;

  /// Bytes of each device: the plan's `arenaBytes`, with a pipeline the most.
  virtual uint64_t allocatedBytesPerDevice() const = 0;

  /// Bytes allocated for all devices together; fewer than the sum over devices
  /// if replicas share memory.
  virtual uint64_t allocatedBytes() const {
    return plan().numDevices() * allocatedBytesPerDevice();
  }

  /// Scratch memory of libraries on a device, in bytes, which the plan does not
  /// count. 0 on CPUs.
  virtual uint64_t scratchBytesPerDevice() const { return 0; }

  /// Gives parameters and states their initial values, which depend on the
  /// seed, the tensor's name and the element's global index alone.
  [[nodiscard]] virtual absl::Status initializeParameters() = 0;

  /// Replaces a tensor on all devices by its shards of a global array, which is
  /// borrowed for the call. NotFound: no such tensor. InvalidArgument: another
  /// type or shape, no data, a label outside of its classes, or a copy of a
  /// parameter, which follows the parameter by itself.
  [[nodiscard]] virtual absl::Status setTensor(absl::string_view name,
                                               ArrayView array) = 0;

  /// The global array of a tensor, put together from its shards: of an input or
  /// label what `setTensor` has given it, before the first run. NotFound: no
  /// such tensor. InvalidArgument: a copy of a parameter. FailedPrecondition: a
  /// parameter or state without a value.
  [[nodiscard]] virtual absl::StatusOr<HostArray>
  getTensor(absl::string_view name) const = 0;

  /// Writes the same array to `out`, which has room for its bytes.
  /// InvalidArgument: `out` is null.
  [[nodiscard]] virtual absl::Status readTensor(absl::string_view name,
                                                void *out) const;

  /// Called with contiguous bytes of a global array, which begin at `offset`;
  /// `data` is borrowed for the call.
  using ReadBytes =
      absl::FunctionRef<void(int64_t offset, const char *data, int64_t bytes)>;

  /// Visits the bytes of a tensor's shards that a device of this process is the
  /// first of all to hold. So several processes together visit every byte of
  /// the global array once, and each may call it when it likes. Errors as of
  /// `getTensor`.
  [[nodiscard]] virtual absl::Status readShards(absl::string_view name,
                                                ReadBytes visit) const;

  /// The rows of an input or label, as of a batch, that devices of this process
  /// take: ascending and disjoint. A run in this process reads no others. All
  /// rows of any other name.
  virtual std::vector<RowRange> rowsOf(absl::string_view name) const;

  /// Writes contiguous bytes of a global array, which begin at `offset`, to
  /// `data`. An error ends the call that it is passed to.
  using FillBytes = absl::FunctionRef<absl::Status(int64_t offset, char *data,
                                                   int64_t bytes)>;

  /// Replaces a parameter or state on the devices of this process: `fill` is
  /// called for the bytes of their shards alone. Processes that all call it set
  /// the tensor on all devices. Errors as of `setTensor`, and those of `fill`,
  /// after which the tensor has no value.
  [[nodiscard]] absl::Status writeShards(absl::string_view name,
                                         FillBytes fill);

  using FillPlaces =
      absl::FunctionRef<absl::Status(absl::Span<const ShardPlace>)>;

  /// For the runtime itself: as `writeShards`, but `fill` is called with
  /// different shards of the tensor, which do not overlap: with all that this
  /// process has, or one after the other.
  [[nodiscard]] virtual absl::Status fillShards(absl::string_view name,
                                                FillPlaces fill);

  /// Of the processes that hold devices of the mesh; null: this one has all.
  virtual Store *store() const { return nullptr; }

  /// Begins a run of a program on one batch, of which it keeps no reference.
  /// Runs begin and end in order. NotFound: no such program. InvalidArgument
  /// names the input that is missing, unknown, of another type or shape,
  /// without data, or a label outside of its classes with its row; or says that
  /// the program is not for users to run. FailedPrecondition: `maxInFlight`
  /// runs have not been awaited, or a parameter or state has no value. All
  /// other errors: the run failed midway.
  [[nodiscard]] virtual absl::Status submit(absl::string_view program,
                                            const NamedArrays &inputs) = 0;

  /// Waits for the oldest run that has not been awaited. FailedPrecondition:
  /// there is none. All other errors: the run failed midway.
  [[nodiscard]] virtual absl::StatusOr<RunResult> await() = 0;

  /// The number of runs in flight, which have been submitted and not awaited,
  /// and its maximum. On CPUs `submit` completes the run, and the maximum is 1;
  /// GPUs work on one batch while the host prepares the next.
  virtual int inFlight() const = 0;
  virtual int maxInFlight() const = 0;

  /// Runs a program on one batch: `submit`, then `await`. FailedPrecondition:
  /// another run is in flight.
  [[nodiscard]] absl::StatusOr<RunResult> run(absl::string_view program,
                                              const NamedArrays &inputs);

  /// What a run in progress has not ended, a kernel with its place in the model
  /// for example, for errors: of all workers the one that is furthest behind.
  /// Empty: there is no run, or nothing is known, as on GPUs. From any thread,
  /// beside other calls.
  virtual std::string describeRun() const { return ""; }

  /// The bubble of the program, of which runs have ended. Empty without them or
  /// without a pipeline, and on GPUs, where tasks are not measured.
  virtual std::optional<PipelineBubble>
  pipelineBubble(absl::string_view program) const {
    (void)program;
    return std::nullopt;
  }

  /// Records the runs that follow in `trace` while it records; null: no longer.
  /// It is borrowed until then, and belongs to no other executor.
  /// FailedPrecondition: it does, or runs on GPUs are in flight. Unimplemented:
  /// an executor without traces.
  [[nodiscard]] virtual absl::Status setTrace(Trace *trace);

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
