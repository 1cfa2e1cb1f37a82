//===- PlanSpec.h - The content of a plan -----------------------*- C++ -*-===//
//
// The content of a plan file, as the runtime itself sees it behind the public
// class Plan. docs/PlanFormat.md describes the format. Structures are plain
// data without locks: those of a Plan are constant.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_PLAN_PLANSPEC_H
#define SHARDC_RT_SRC_PLAN_PLANSPEC_H

#include "base/Mesh.h"
#include "init/Initialize.h"
#include "shardc-rt/DType.h"
#include "shardc-rt/Plan.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shardc::rt {

enum class Part : int8_t { Forward, Backward, Update };
enum class CollectiveKind : int8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  CollectivePermute
};
enum class Reduction : int8_t { Sum, Max };
enum class Activation : int8_t { None, Relu };
enum class Summed : int8_t { B, A };
enum class Precision : int8_t { Highest, TF32, BF16 };
enum class Stream : int8_t { Compute, Communication, Copies };
enum class TaskKind : int8_t {
  Forward,
  Backward,
  InputGradient,
  WeightGradient
};
enum class MemoryKind : int8_t {
  Parameters,
  Gradients,
  OptimizerStates,
  Activations,
  Inputs,
  Workspace
};

absl::string_view toString(Part part);
/// "all_reduce", "all_gather", ...
absl::string_view toString(CollectiveKind kind);
absl::string_view toString(MemoryKind kind);
/// "F", "B", "I", "W".
absl::string_view toString(TaskKind kind);
/// "compute", "communication", "copies".
absl::string_view toString(Stream stream);

/// Whether the host gives tensors of this role for each run.
inline bool isFed(Role role) {
  return role == Role::Input || role == Role::Label;
}

/// A tensor that outlives a step.
struct TensorSpec : TensorInfo {
  Sharding sharding;
  InitializerSpec initializer; ///< Parameters and states.
  /// States: the parameter that they belong to; may be empty. Copies: the
  /// parameter that they are rounded from.
  std::string parameter;
  uint64_t offset = 0; ///< Bytes into the arena.
  uint64_t bytes = 0;  ///< Of the local shard, padding included.
};

/// A region of each device's arena.
struct BufferSpec {
  uint64_t offset;
  uint64_t bytes;
  DType dtype;
  std::vector<int64_t> shape; ///< Local, padding included.
  uint64_t stride = 0;        ///< Bytes that each run of a loop moves it on.
};

/// A range of iterations of a launch that is independent of the others.
struct LaunchPart {
  int64_t extent;
  std::vector<uint32_t> buffers; ///< Positions in the launch's list.
  /// Mesh axes whose coordinates it may read.
  std::vector<int> coordinateAxes;
  /// By buffer: b > 0, if iterations [i, j) touch bytes [i·b, j·b) alone.
  /// Empty: all may touch any.
  std::vector<uint64_t> bytesPerIteration = {};
};

struct LaunchCommand {
  uint32_t kernel;
  std::vector<uint32_t> buffers;
  int64_t extent;
  int64_t grain;
  uint32_t writes;  ///< The last so many of `buffers` are written.
  uint32_t threads; ///< Of each of `extent` blocks on a GPU; 0: for a CPU.
  /// All iterations, in order: one part or more, none for a GPU.
  std::vector<LaunchPart> parts;
  uint64_t matmulFlops = 0; ///< Of one device.
  /// The kernel of `groupDevices` devices, if these are more than 0. It takes
  /// what is read of one after the other, then what is written. They have one
  /// buffer number `groupShared`; if that is negative, the kernel adds up their
  /// results, in one buffer.
  uint32_t groupKernel = 0;
  int64_t groupDevices = 0;
  int64_t groupShared = -1;

  bool canAddUp() const { return groupDevices > 0 && groupShared < 0; }
};

struct GemmCommand {
  uint32_t a, b, c;
  int32_t bias; ///< Negative: none.
  int64_t batch, m, n, k;
  bool transposeA, transposeB, accumulate;
  Activation activation;
  /// The precision that factors of f32 may be rounded to: fractions of 23, 10
  /// or 7 bits.
  Precision precision = Precision::Highest;
  /// Negative: none; otherwise the sums over k of b, or of a.
  int32_t columnSums = -1;
  Summed columnSumsOf = Summed::B;

  /// The number of sums of columns.
  int64_t numColumnSums() const { return columnSumsOf == Summed::A ? m : n; }
};

/// The element types of a GEMM: those of a and b, and of c and the bias.
struct GemmTypes {
  DType factors, result; ///< Equal, or bf16 and f32.
};

struct CollectiveItem {
  uint32_t in, out;
  int32_t dim;
  int32_t splitDim;
};

/// Begins a collective. On a CPU it is in flight until its wait; on a GPU it is
/// an ordinary command without a wait.
struct CollectiveStartCommand {
  CollectiveKind kind;
  Reduction reduction;
  std::vector<int> axes;
  std::vector<int> targetAxes;
  std::vector<CollectiveItem> items;
  uint32_t report;
  std::vector<int> sources = {};
};

/// Ends the collective, send or receive that command `start` began; on a CPU
/// every start has one.
struct CollectiveWaitCommand {
  uint32_t start;
};

struct CopyCommand {
  uint32_t in, out;
};

struct ClearCommand {
  uint32_t buffer;
};

/// The next `commands` commands, `runs` times.
struct LoopCommand {
  int64_t runs;
  uint32_t commands;
};

/// On a GPU: copies the part of an input or label from the host.
struct UploadCommand {
  uint32_t tensor; ///< Of Plan::tensors.
};

/// On a GPU: copies a result to the host.
struct DownloadCommand {
  uint32_t result; ///< Of ProgramSpec::results.
};

/// Begins to copy `buffers` to the same device of rank `peer` of the pipeline.
struct SendCommand {
  std::vector<uint32_t> buffers;
  int peer;
  uint32_t message; ///< Of all programs of one name together.
  uint32_t report;  ///< Of ProgramSpec::collectives.
};

/// Begins to receive `buffers` from the same device of rank `peer`.
struct ReceiveCommand {
  std::vector<uint32_t> buffers;
  int peer;
  uint32_t message;
};

struct Command {
  std::variant<LaunchCommand, GemmCommand, CollectiveStartCommand,
               CollectiveWaitCommand, CopyCommand, ClearCommand, LoopCommand,
               UploadCommand, DownloadCommand, SendCommand, ReceiveCommand>
      operation;
  Part part;
  std::string source; ///< "file:line:col" in the model.
  /// Commands of a stream run in order, those of different streams at any time
  /// (plan/HappensBefore.h). For a CPU all are on Compute.
  Stream stream = Stream::Compute;
  /// The commands that have to be complete, in all runs issued so far, before
  /// this one runs. Ascending.
  std::vector<uint32_t> after;
  int32_t task = -1; ///< Of ProgramSpec::tasks; negative: none.
};

/// One line of the communication report; bytes per device.
struct CollectiveReport {
  std::optional<CollectiveKind> kind; ///< None: a send of a pipeline.
  std::vector<std::string> axes;
  int64_t groupSize;
  uint64_t bytes;
  uint64_t wireBytes; ///< In all runs of a step.
  Part part;
  std::string source;
  std::string cause;
  int64_t runs = 1;   ///< Of the loop it is in.
  double seconds = 0; ///< In all runs of a step, estimated.
};

struct ResultSpec {
  std::string name;
  uint32_t buffer;
  std::vector<int64_t> shape; ///< Global.
  Sharding sharding;
};

/// The part of a program that serves one stage and one microbatch.
struct TaskSpec {
  TaskKind kind;
  int stage;
  int64_t microbatch;
  double seconds; ///< Estimated.
};

/// One entry point: "train_step", "evaluate", "predict" or `roundingProgram`.
struct ProgramSpec {
  GemmTypes typesOf(const GemmCommand &gemm) const {
    return {buffers[gemm.a].dtype, buffers[gemm.c].dtype};
  }

  std::string name;
  std::vector<BufferSpec> buffers;
  std::vector<Command> commands;
  std::vector<ResultSpec> results;
  std::vector<CollectiveReport> collectives;
  uint64_t wireBytes;
  uint64_t matmulFlops;
  uint64_t peakBytes;
  double estimatedSeconds = 0; ///< Of one run; 0: unknown.
  std::string estimatedOn;     ///< The machine of the estimate.
  std::vector<TaskSpec> tasks; ///< In order; of a pipeline.
  /// The tensors that it takes from the host, by their numbers in the whole
  /// plan, ascending; with a pipeline those of the rank. Absent: all inputs and
  /// labels.
  std::optional<std::vector<uint32_t>> inputs;
};

struct MemoryReport {
  struct Entry {
    MemoryKind kind;
    uint64_t bytes;
  };
  struct Largest {
    std::string name;
    uint64_t bytes;
    MemoryKind kind;
    std::string source;
  };
  std::vector<Entry> entries;
  std::vector<Largest> largest;
};

/// A further version of a plan's kernels, for CPUs with more features.
struct CpuCode {
  std::string cpuTarget;
  std::vector<std::string> features; ///< Named as in /proc/cpuinfo.
  std::string code;                  ///< An ELF shared object.
};

struct PlanSpec;

/// The cut of a plan into stages. Devices with one coordinate on `axis` are a
/// pipeline rank.
struct PipelineSpec {
  int axis = 0;
  std::string schedule;
  std::vector<int> stages; ///< By stage its rank.
  int64_t microbatches = 1;
  /// Of a train step until its last rank ends; 0: unknown.
  double estimatedSeconds = 0;
  /// By rank the plan of its devices, without code. Its mesh has `axis` with
  /// size 1. Tensors have their offsets here alone, in the order of the whole
  /// plan, and programs are here alone; program number p has the same name on
  /// all ranks.
  std::vector<PlanSpec> ranks;
};

/// The content of a plan. That of a Plan has been verified.
struct PlanSpec {
  /// The tensor `name`, or null.
  const TensorSpec *findTensor(absl::string_view name) const;
  /// The program `name`, with a pipeline that of the rank that sends most; or
  /// null.
  const ProgramSpec *findProgram(absl::string_view name) const;
  /// The plans of the pipeline ranks; without a pipeline this plan alone.
  absl::Span<const PlanSpec> ranks() const {
    return pipeline ? absl::MakeConstSpan(pipeline->ranks)
                    : absl::MakeConstSpan(this, 1);
  }
  /// The device of the mesh that is device `device` of rank `rank`.
  int64_t deviceOf(int rank, int64_t device) const;
  /// The devices of rank `rank` that are among these of the mesh; [0, 0) if
  /// none is.
  DeviceRange devicesOf(int rank, DeviceRange devices) const;
  /// Of the plan of a pipeline rank: whether all ranks take part in a
  /// collective.
  bool isOverRanks(const CollectiveStartCommand &start) const {
    return std::find(start.axes.begin(), start.axes.end(), rankAxis) !=
           start.axes.end();
  }
  /// The rank of a device of the mesh; without a pipeline 0.
  int rankOf(int64_t device) const {
    return pipeline ? mesh.coordinate(device, pipeline->axis) : 0;
  }
  /// Whether program number `program` takes tensor `tensor` from the host.
  bool takes(size_t program, size_t tensor) const;
  /// The rank whose program number `program` has results; 0 if none has.
  int rankOfResults(size_t program) const;
  /// The number here of tensor `tensor` of the whole plan; negative: it is on
  /// other ranks.
  int64_t numberOf(size_t tensor) const {
    return rankAxis < 0 ? tensor : tensorNumbers[tensor];
  }
  /// The first rank that has tensor `tensor` of the whole plan. All that have
  /// it hold the same.
  int firstRankWith(size_t tensor) const;

  std::string producer;
  std::string model;
  uint64_t fingerprint = 0;
  std::string cpuTarget;
  std::string gpuTarget; ///< Of the kernels; empty: they are for a CPU.
  Mesh mesh;
  /// Of the plan of a pipeline rank: the axis of the mesh along which ranks
  /// differ, which has size 1 there. Negative otherwise.
  int rankAxis = -1;
  /// Of the same: by tensor of the whole plan its number in `tensors`, or -1.
  std::vector<int64_t> tensorNumbers;
  int64_t batchSize = 0;
  std::vector<TensorSpec> tensors;
  std::vector<ProgramSpec> programs; ///< With a pipeline none.
  std::optional<PipelineSpec> pipeline;
  std::vector<std::string> kernels;
  /// Multiversioned kernels for CPUs with more features than `cpuTarget`; the
  /// first that this CPU can run replaces `code`.
  std::vector<CpuCode> codeVersions;
  std::string code;  ///< An ELF shared object, or PTX for a GPU.
  std::string cubin; ///< That PTX for `gpuTarget`, assembled; may be empty.
  uint64_t arenaBytes = 0;
  uint32_t alignment = 64;
  MemoryReport memory; ///< With a pipeline, of the greatest arena.
  /// Why there is no program "predict"; may be empty.
  std::string noPrediction;
};

/// NotFound: the plan has no program `name`, with the reason where it has one.
absl::Status missingProgram(const PlanSpec &plan, absl::string_view name);

/// A plan that has not been read from a file, nor verified: for tests.
std::shared_ptr<const Plan> makeUnverifiedPlan(PlanSpec spec);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_PLANSPEC_H
