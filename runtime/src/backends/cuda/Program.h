//===- Program.h - A program issued to streams ------------------*- C++ -*-===//
//
// Commands are issued in the order of the list, for all devices, each to its
// stream: it waits for the events of the commands in `after`, and an event is
// recorded behind it if another command names it. All of it is captured, or
// else run with a wait behind every command.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_PROGRAM_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_PROGRAM_H

#include "backends/cuda/Collectives.h"
#include "backends/cuda/Device.h"
#include "backends/cuda/Gemm.h"
#include "backends/cuda/Graph.h"
#include "backends/cuda/HostLayout.h"
#include "backends/cuda/Module.h"

#include <map>
#include <optional>

namespace shardc::rt::cuda {

/// What the programs of a plan share; outlives them.
struct DeviceSet {
  const Plan &plan;
  const Context &context;
  const Module &kernels;
  const HostLayout &host;
  const std::vector<Device> &devices;
  DeviceCollectives &collectives;
  /// Null if the plan has no matrix products.
  const GemmLibrary *gemms;
  uint64_t maxGemmWorkspace;
};

class Program {
public:
  /// Prepares matrix products and collectives and creates events. Program
  /// `number` of the plan.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Program>>
  prepare(const DeviceSet &set, size_t number);

  /// Scratch memory that matrix products of a device need.
  uint64_t workspaceBytes() const { return workspaceSize; }
  /// Bytes that the collectives of a run send (RunResult::wireBytes).
  uint64_t wireBytes() const { return wireSize; }

  /// A run as a graph that begins and ends on `main`. Inputs and results are in
  /// the host's `batch`; `workspaces` has scratch memory for each device.
  [[nodiscard]] absl::StatusOr<Graph>
  capture(const Stream &main, char *batch,
          absl::Span<const DeviceMemory> workspaces);

  /// Runs it on its streams, one command after the other, and waits at most
  /// `deadline` for each: errors name the command in which they happened.
  [[nodiscard]] absl::Status
  runSerialized(const Stream &main, char *batch,
                absl::Span<const DeviceMemory> workspaces,
                absl::Duration deadline);

private:
  Program(const DeviceSet &set, size_t number)
      : set(set), number(number), spec(set.plan.programs[number]) {}

  absl::Status prepareCommand(uint32_t command, int64_t runs);
  absl::Status prepareCollective(uint32_t command, int64_t runs);
  absl::Status prepareEvents();
  absl::Status issueAll(const Stream &main, char *batch,
                        absl::Span<const DeviceMemory> workspaces);
  absl::Status issueCommand(uint32_t command, int64_t run, char *batch,
                            absl::Span<const DeviceMemory> workspaces);
  absl::Status waitForAll(absl::Duration deadline);
  absl::Status issueOn(int64_t device, uint32_t command, int64_t run,
                       char *batch, CUdeviceptr workspace);
  absl::Status launch(const LaunchCommand &launch, int64_t device, int64_t run,
                      const Stream &stream) const;
  CUdeviceptr address(int64_t device, uint32_t buffer, int64_t run) const;
  absl::Status annotate(const absl::Status &status, uint32_t command) const;

  const DeviceSet &set;
  const size_t number;
  const ProgramSpec &spec;
  /// By command.
  std::map<uint32_t, std::unique_ptr<Gemm>> gemms;
  /// By command; one for all runs of a loop, or one for each where operands
  /// move.
  std::map<uint32_t, std::vector<std::unique_ptr<DeviceCollective>>>
      collectives;
  /// By command that others wait for, then device.
  std::map<uint32_t, std::vector<Event>> events;
  /// Commands whose events have been recorded in the capture under way.
  std::vector<bool> isRecorded;
  /// All streams of all devices, each once, and an event for the end of each.
  std::vector<const Stream *> streams;
  std::vector<Event> ends;
  std::vector<Event> begin;
  /// Longest wait for each command; none: commands are captured.
  std::optional<absl::Duration> serialized;
  uint64_t workspaceSize = 0;
  uint64_t wireSize = 0;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_PROGRAM_H
