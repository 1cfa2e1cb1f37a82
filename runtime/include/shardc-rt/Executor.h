//===- Executor.h - Runs a plan on virtual devices --------------*- C++ -*-===//
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
};

/// What one run of a program gave.
struct RunResult {
  /// Global arrays by the name of the result.
  std::vector<std::pair<std::string, HostArray>> results;
  /// Of the result "loss"; NaN if the program has none.
  double loss = 0;
  /// Bytes that the collectives sent, counted as they ran: logical, per
  /// device, the maximum over devices, on padded sizes.
  uint64_t wireBytes = 0;
  double seconds = 0;
  double communicationSeconds = 0;

  /// The result `name`, or null.
  const HostArray *find(absl::string_view name) const;
};

/// Inputs and labels by name: global arrays, borrowed for the call.
using NamedArrays = std::map<std::string, ArrayView>;

class Executor {
public:
  /// ResourceExhausted if an arena cannot be allocated, DataLoss if the plan's
  /// machine code does not load. The context must outlive the executor.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Executor>>
  create(Context &context, std::shared_ptr<const Plan> plan,
         ExecutorOptions options = {});
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  const Plan &plan() const;

  /// Bytes allocated for each device: the plan's `arenaBytes`.
  uint64_t allocatedBytesPerDevice() const;

  /// Gives parameters and states their initial values.
  [[nodiscard]] absl::Status initializeParameters();

  /// Replaces a tensor on all devices by its shards of a global array.
  /// NotFound: no such tensor. InvalidArgument: another type or shape.
  [[nodiscard]] absl::Status setTensor(absl::string_view name, ArrayView array);

  /// The global array of a tensor, put together from its shards.
  [[nodiscard]] absl::StatusOr<HostArray>
  getTensor(absl::string_view name) const;

  /// Runs a program on one batch. InvalidArgument names the input that is
  /// missing, unknown, or of another type or shape.
  [[nodiscard]] absl::StatusOr<RunResult> run(absl::string_view program,
                                              const NamedArrays &inputs);

  /// run("train_step", inputs): updates parameters and states; the loss is that
  /// of the batch before the update.
  [[nodiscard]] absl::StatusOr<RunResult> step(const NamedArrays &inputs) {
    return run("train_step", inputs);
  }

private:
  struct Implementation;
  explicit Executor(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace shardc::rt

#endif // SHARDC_RT_EXECUTOR_H
