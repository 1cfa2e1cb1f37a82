//===- Devices.h - The devices of a run -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_DEVICES_H
#define SHARDC_TOOLS_SHARDC_RUN_DEVICES_H

#include "Arguments.h"

#include "shardc-rt/Cuda.h"

#include <memory>
#include <string>
#include <vector>

namespace shardc::run {

/// Prints the devices there are (--list-devices), in lines or as one JSON
/// object; returns the exit code.
int listDevices(const Arguments &arguments);

/// Connects with the other processes that were started with this one, if any;
/// exit code 0, or the code and an error printed. Several processes need GPUs.
int joinRanks(const Arguments &arguments, std::unique_ptr<rt::Store> &store);

/// The devices of a mesh: virtual ones on the cores of this computer, or GPUs,
/// in one process or several. First `find`, then `place`. Not thread-safe.
class Devices {
public:
  /// `store` leads to the other processes, and is borrowed; null: there are
  /// none.
  Devices(const Arguments &arguments, rt::Store *store);

  /// Looks for GPUs, or makes the workers of virtual devices. Exit code 0, or
  /// the code and an error printed.
  int find();

  /// The target of compilations by default; empty: the compiler's default.
  std::string target() const;

  /// Decides which of them the devices of `plan` in this process are on.
  void place(const rt::Plan &plan);

  /// The devices of `plan` in words, for the header of a run.
  std::string describe(const rt::Plan &plan) const;

  /// `plan` on the devices that were placed.
  absl::StatusOr<std::unique_ptr<rt::Executor>>
  createExecutor(std::shared_ptr<const rt::Plan> plan,
                 const rt::ExecutorOptions &options) const;

  /// Checks that the memory of this computer holds virtual devices of `bytes`
  /// and, beside them, a reference of `referenceBytes`: exit code 0, or 4 and
  /// an error printed. The memory of GPUs is checked when it is allocated.
  int checkMemory(uint64_t bytes, uint64_t referenceBytes) const;

  /// `plan`, of one device, in this process alone.
  absl::StatusOr<std::unique_ptr<rt::Executor>>
  createReference(std::shared_ptr<const rt::Plan> plan,
                  const rt::ExecutorOptions &options) const;

private:
  const Arguments &arguments;
  /// Of virtual devices; null on GPUs.
  std::unique_ptr<rt::Context> context;
  std::vector<rt::GpuInfo> gpus;
  rt::CudaOptions cuda;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_DEVICES_H
