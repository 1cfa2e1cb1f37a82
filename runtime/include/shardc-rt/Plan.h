//===- Plan.h - A verified executable plan ----------------------*- C++ -*-===//
//
// `shardc-compile` writes plans, and an Executor runs them. A Plan exists only
// after its file has been verified: every index, range and shape in it is
// sound. The machine code that it carries is trusted as an executable is.
// docs/PlanFormat.md describes the format.
//
// Thread-safety: a Plan is immutable. Threads and executors may share one.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_PLAN_H
#define SHARDC_RT_PLAN_H

#include "shardc-rt/DType.h"
#include "shardc-rt/Errors.h"
#include "shardc-rt/Export.h"
#include "shardc-rt/PlanFormat.h"

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardc::rt {

struct PlanSpec;

/// The role of a tensor in the model. Copies are shadow weights, parameters
/// rounded to bf16; the executor keeps them up to date, and no query of a Plan
/// shows them.
enum class Role : int8_t { Parameter, State, Input, Label, Copy };

/// "parameter", "state", "input", "label", "copy".
SHARDC_RT_API absl::string_view toString(Role role);

/// An axis of the mesh.
struct AxisInfo {
  std::string name;
  int64_t size = 1;
};

/// A tensor that a host sets or reads, as a global array.
struct TensorInfo {
  std::string name;
  Role role;
  DType dtype;
  std::vector<int64_t> shape; ///< Global; the first dimension of inputs and
                              ///< labels is the batch.
  int64_t labelClasses = 0;   ///< Labels are in [0, labelClasses); 0: any.
  /// The axes of the mesh that shard each dimension, major to minor.
  std::vector<std::vector<std::string>> axes = {};
  std::vector<int64_t> shardShape = {}; ///< Of a device, padding included.
};

/// A result of a program, as a global array.
struct ResultInfo {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape; ///< Global.
};

/// A collective, or a send between the stages of a pipeline. Bytes are logical,
/// per device, on padded sizes.
struct CollectiveInfo {
  /// "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
  /// "collective_permute" or "send".
  std::string kind;
  std::vector<std::string> axes;
  int64_t groupSize = 1;
  uint64_t bytes = 0;     ///< Of the tensor that the group sees.
  uint64_t wireBytes = 0; ///< That a device sends in all runs.
  int64_t runs = 1;       ///< In one run of the program.
  double seconds = 0;     ///< Of all runs, estimated by the compiler.
  std::string part;       ///< "forward", "backward" or "update".
  std::string source;     ///< "file:line:column" in the model; may be empty.
  std::string cause;      ///< Why it is there; may be empty.
  int rank = -1;          ///< Of the pipeline; negative: there is none.
};

/// A program that a host runs: "train_step", "evaluate" where the model can be
/// evaluated, and "predict" where its loss is computed from one output.
struct ProgramInfo {
  std::string name;
  /// The inputs and labels that it takes, in the order of the plan.
  std::vector<std::string> inputs;
  std::vector<ResultInfo> results;
  /// Bytes that each device sends in one run; with a pipeline the most of all.
  uint64_t wireBytes = 0;
  /// Floating-point operations of GEMMs that each device does in one run; with
  /// a pipeline the most of all.
  uint64_t matmulFlops = 0;
  /// In the order of the program; with a pipeline those of all ranks, one rank
  /// after the other.
  std::vector<CollectiveInfo> collectives = {};
};

/// A plan and the questions that a host may ask of it. The references and spans
/// returned live as long as the plan.
class SHARDC_RT_API Plan {
public:
  /// Reads and verifies a file. NotFound if it cannot be opened, otherwise as
  /// `parse`. Errors begin with the path.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const Plan>>
  loadFile(const std::string &path);

  /// Verifies the bytes of a plan. DataLoss: not a plan, damaged, or of another
  /// version. Unavailable: this CPU lacks a feature that the plan needs.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const Plan>>
  parse(std::string bytes);

  ~Plan();
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  /// The compiler that wrote the plan, and the name of the model.
  const std::string &producer() const;
  const std::string &model() const;
  /// A hash of the file's content.
  uint64_t fingerprint() const;
  /// "x86-64-v3" or another level of CPUs, or "sm_90" or another architecture
  /// of GPUs.
  const std::string &target() const;
  /// Whether `createCudaExecutor` (shardc-rt/Cuda.h) runs the plan, in place of
  /// `Executor::create`.
  bool isForGpu() const;
  /// The axes of the mesh, as "data=4,model=2".
  const std::string &mesh() const;
  absl::Span<const AxisInfo> axes() const;
  int64_t numDevices() const;
  /// Rows of a batch.
  int64_t batchSize() const;
  /// Bytes that each device needs; with a pipeline the most of all.
  uint64_t arenaBytes() const;

  /// Why the plan has no program "predict", with the place in the model; empty
  /// if it has one, or if an older compiler made the plan.
  const std::string &noPrediction() const;

  /// In the order of the plan.
  absl::Span<const TensorInfo> tensors() const;
  absl::Span<const ProgramInfo> programs() const;
  /// The tensor or program `name`, or null.
  const TensorInfo *findTensor(absl::string_view name) const;
  const ProgramInfo *findProgram(absl::string_view name) const;

  /// For the runtime itself: all of the plan (plan/PlanSpec.h, which is not
  /// installed).
  const PlanSpec &spec() const { return *ownSpec; }

private:
  struct View;
  SHARDC_RT_PRIVATE explicit Plan(std::unique_ptr<const PlanSpec> spec);
  friend std::shared_ptr<const Plan> makeUnverifiedPlan(PlanSpec spec);

  std::unique_ptr<const PlanSpec> ownSpec;
  std::unique_ptr<const View> view;
};

} // namespace shardc::rt

#endif // SHARDC_RT_PLAN_H
