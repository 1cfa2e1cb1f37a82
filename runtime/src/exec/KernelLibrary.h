//===- KernelLibrary.h - A plan's machine code, loaded ----------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_KERNELLIBRARY_H
#define SHARDC_RT_SRC_EXEC_KERNELLIBRARY_H

#include "plan/PlanSpec.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardc::rt {

/// The ABI of generated kernels (docs/PlanFormat.md).
using KernelFunction = void (*)(void *const *buffers, const int64_t *context,
                                int64_t begin, int64_t end);

/// The shared object of a plan, loaded from memory; unloads with it.
class KernelLibrary {
public:
  /// The version for `cpuTarget`; if that is empty, the widest that this CPU
  /// supports. DataLoss if it does not load or lacks a kernel. Unavailable: the
  /// plan is for GPUs, or this CPU lacks a feature of `cpuTarget`.
  /// InvalidArgument: the plan has no code for `cpuTarget`.
  static absl::StatusOr<std::unique_ptr<KernelLibrary>>
  load(const PlanSpec &plan, const std::string &cpuTarget = "");
  ~KernelLibrary();

  KernelFunction kernel(uint32_t index) const { return kernels[index]; }

private:
  KernelLibrary() = default;
  /// Open as long as the library is loaded: the loader tells libraries apart by
  /// the path /proc/self/fd/FILE.
  int file = -1;
  void *handle = nullptr;
  std::vector<KernelFunction> kernels;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_KERNELLIBRARY_H
