//===- Devices.h - The devices of a run -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_DEVICES_H
#define SHARDC_TOOLS_SHARDC_RUN_DEVICES_H

#include "Arguments.h"

#include "shardc-rt/Cuda.h"
#include "shardc-rt/Processes.h"

#include <memory>
#include <string>
#include <vector>

namespace shardc::run {

/// With the user's paths of the vendor's libraries.
rt::CudaOptions cudaOptions(const Arguments &arguments);

/// Prints the devices there are (--list-devices), in lines or as one JSON
/// object; returns the exit code.
int listDevices(const Arguments &arguments);

/// The other processes that were started with this one: a store for those with
/// GPUs, or MPI, which has a store, for those with virtual CPU devices. Both
/// null: there are none.
struct Peers {
  std::unique_ptr<rt::Store> ofGpus;
  std::unique_ptr<rt::Processes> ofCpus;
  /// A launcher started this process, maybe as the only one.
  bool isLaunched = false;

  /// Null: there are no others.
  rt::Store *store() const { return ofCpus ? &ofCpus->store() : ofGpus.get(); }
};

/// Connects with the other processes, if any; exit code 0, or the code and an
/// error printed.
int joinRanks(const Arguments &arguments, Peers &peers);

/// Whether another process that was started with this one speaks for both.
bool isSecondProcess();

/// The devices of a mesh: virtual ones on the cores of this computer, or GPUs,
/// in one process or several. First `find`, then `place`. Not thread-safe.
class Devices {
public:
  /// `peers` are borrowed.
  Devices(const Arguments &arguments, const Peers &peers);

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
                 rt::ExecutorOptions options) const;

  /// Checks that the memory of this computer holds virtual devices of `bytes`
  /// and, beside them, a reference of `referenceBytes`: exit code 0, or 4 and
  /// an error printed. The memory of GPUs is checked when it is allocated.
  int checkMemory(uint64_t bytes, uint64_t referenceBytes) const;

  /// `plan`, of one device, in this process alone.
  absl::StatusOr<std::unique_ptr<rt::Executor>>
  createReference(std::shared_ptr<const rt::Plan> plan,
                  const rt::ExecutorOptions &options) const;

  /// Of GPUs.
  const rt::CudaOptions &optionsOfGpus() const { return cuda; }

  /// Of virtual devices alone.
  rt::Context &workers() const { return *context; }

  /// Of virtual devices in several processes; else null.
  rt::Processes *processes() const { return peers.ofCpus.get(); }

  /// Whether a launcher has started this process.
  bool isLaunched() const { return peers.isLaunched; }

private:
  const Arguments &arguments;
  /// Of virtual devices; null on GPUs.
  std::unique_ptr<rt::Context> context;
  /// Why it has fewer threads than the computer has CPUs; may be empty.
  std::string cpuLimits;
  std::vector<rt::GpuInfo> gpus;
  rt::CudaOptions cuda;
  const Peers &peers;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_DEVICES_H
