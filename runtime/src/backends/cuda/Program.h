//===- Program.h - A program issued to streams ------------------*- C++ -*-===//
//
// Commands are issued in the order of the list, for all devices, each to its
// stream. A command waits for the events of the commands in `after`, and an
// event is recorded behind it if another command names it. The whole program is
// captured, or it runs with a wait behind every command.
//
// With a pipeline the devices of a rank have commands of their own. All
// processes issue those of their ranks in one joint order (CheckPipeline.h), a
// send and its receive together. So a process may hold devices of several
// ranks, and processes may wait for each other's commands while they issue.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_PROGRAM_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_PROGRAM_H

#include "backends/cuda/Collectives.h"
#include "backends/cuda/CommandTimes.h"
#include "backends/cuda/Device.h"
#include "backends/cuda/Gemm.h"
#include "backends/cuda/Graph.h"
#include "backends/cuda/Module.h"
#include "backends/cuda/Nvtx.h"
#include "backends/cuda/StagedInputs.h"
#include "plan/CheckPipeline.h"

#include <map>
#include <optional>

namespace shardc::rt::cuda {

/// Shared by the programs of a plan; outlives them.
struct DeviceSet {
  const PlanSpec &plan;
  const std::vector<std::unique_ptr<Gpu>> &gpus;
  const HostLayout &host;
  /// The devices of this process, grouped by GPU in the order of GPUs.
  const std::vector<Device> &devices;
  DeviceCollectives &collectives;
  uint64_t maxGemmWorkspace;
  /// Null: none were timed.
  const GemmChoices *choices;
  /// Null: no profiler listens.
  const Nvtx *nvtx;
};

class Program {
public:
  /// Prepares GEMMs and collectives and creates events. Program
  /// `number` of the plan.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Program>>
  prepare(const DeviceSet &set, size_t number);

  /// Scratch memory that GEMMs of a device need.
  uint64_t workspaceBytes() const { return workspaceSize; }
  /// Bytes that a device sends in a run, with a pipeline the most of all ranks
  /// (RunResult::wireBytes).
  uint64_t wireBytes() const { return wireSize; }

  /// A run as one graph for each GPU, which begins and ends on its main stream.
  /// Inputs and results are in `batch`, which outlives it. With `times`, which
  /// also do, runs record events between commands.
  [[nodiscard]] absl::StatusOr<std::vector<Graph>>
  capture(const BatchMemory &batch, CommandTimes *times = nullptr);
  /// Makes the events of a run, before it is captured or issued.
  [[nodiscard]] absl::Status reserve(CommandTimes &times) const;

  /// Runs it on its streams, one command after the other, and waits at most
  /// `deadline` for each: errors name the command in which they happened.
  [[nodiscard]] absl::Status runSerialized(const BatchMemory &batch,
                                           absl::Duration deadline,
                                           CommandTimes *times = nullptr);

  /// Its steps in the words of a trace, one for each run of a loop.
  TracedProgram describeSteps() const;

  /// Seconds of `command` alone, on all devices of this process: the mean of
  /// `repeats` that are issued one behind the other. It computes from the
  /// current content of the arena. The plan has no pipeline.
  [[nodiscard]] absl::StatusOr<double> timeAlone(uint32_t command, int repeats,
                                                 const BatchMemory &batch,
                                                 absl::Duration deadline);

private:
  Program(const DeviceSet &set, size_t number);

  /// Commands that are issued together, in one run of their loop.
  struct Step {
    PipelineStep commands;
    int64_t run = 0;
  };
  /// A pipeline rank, 0 without a pipeline, and a command of its program.
  using Key = std::pair<int, uint32_t>;
  static Key keyOf(RankCommand at) { return {at.rank, at.command}; }

  const ProgramSpec &programOf(int rank) const {
    return set.plan.ranks()[rank].programs[number];
  }
  const Command &commandAt(RankCommand at) const {
    return programOf(at.rank).commands[at.command];
  }
  template <typename T>
  const T &operationAt(RankCommand at) const {
    return std::get<T>(commandAt(at).operation);
  }

  absl::Status findSteps();
  CollectiveSpec describeCollective(RankCommand at) const;
  uint64_t sentBytes(RankCommand at) const;
  std::vector<const Device *> devicesOf(const PipelineStep &commands) const;
  absl::Status prepareStep(const Step &step);
  absl::Status prepareGemm(RankCommand at);
  absl::Status prepareCollective(const Step &step);
  absl::Status prepareTransfers(const PipelineStep &commands);
  absl::Status prepareEvents();
  absl::Status issueAll(const BatchMemory &batch, CommandTimes *times);
  absl::Status issueStep(const Step &step, const BatchMemory &batch,
                         CommandTimes *times);
  /// `use` is that of arenas (DescribeSteps.h), by rank and command.
  TracedStep describeStep(const Step &step,
                          absl::Span<const std::vector<uint64_t>> use) const;
  absl::Status waitForAll(absl::Duration deadline);
  absl::Status issueOn(const Device &device, uint32_t command, int64_t run,
                       const BatchMemory &batch);
  /// Comes before any work is issued to `gpu`.
  absl::Status enter(const Gpu &gpu) const;
  const StagedInputs &stagedOn(const Gpu &gpu, const BatchMemory &batch) const;
  absl::Status launch(const LaunchCommand &launch, const Device &device,
                      int64_t context, int64_t run, const Stream &stream) const;
  CUdeviceptr address(const Device &device, uint32_t buffer, int64_t run) const;
  /// "launch of shardc_map_3, model.mlir:7:5".
  std::string describe(RankCommand at) const;
  /// Its position among `steps`.
  uint32_t numberOf(const Step &step) const { return &step - steps.data(); }
  absl::Status annotate(const absl::Status &status, RankCommand at) const;

  const DeviceSet &set;
  const size_t number;
  /// By pipeline rank its devices of this process.
  std::vector<std::vector<const Device *>> devices;
  /// Those of this process, in the order in which they are issued.
  std::vector<Step> steps;
  /// By GPU.
  std::map<Key, std::map<const Gpu *, std::unique_ptr<Gemm>>> gemms;
  /// Collectives and transfers, by the first command of their step; one for all
  /// runs of a loop, or one for each where operands move.
  std::map<Key, std::vector<std::unique_ptr<DeviceCollective>>> collectives;
  /// By command that others wait for, then device of its rank.
  std::map<Key, std::vector<Event>> events;
  /// By rank, the commands whose events have been recorded in the present
  /// capture.
  std::vector<std::vector<bool>> isRecorded;
  /// The streams of a GPU's devices, each once, an event for the end of each,
  /// and one for the beginning.
  struct Ends {
    std::vector<const Stream *> streams;
    std::vector<Event> ends;
    std::vector<Event> begin;
  };
  std::vector<Ends> ends; ///< By GPU.
  /// Longest wait for each command; none: commands are captured.
  std::optional<absl::Duration> serialized;
  uint64_t workspaceSize = 0;
  uint64_t wireSize = 0;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_PROGRAM_H
