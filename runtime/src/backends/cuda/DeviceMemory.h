//===- DeviceMemory.h - Memory of a GPU -------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_DEVICEMEMORY_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_DEVICEMEMORY_H

#include "backends/cuda/Owned.h"

#include <cstdint>

namespace shardc::rt::cuda {

/// Bytes in global memory, aligned to 256 at least.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// Nothing is allocated for 0 bytes. ResourceExhausted names `purpose`.
  [[nodiscard]] static absl::StatusOr<DeviceMemory>
  allocate(const Context &context, uint64_t bytes, absl::string_view purpose) {
    DeviceMemory memory;
    if (bytes == 0)
      return memory;
    if (absl::Status s = context.makeCurrent(); !s.ok())
      return s;
    CUdeviceptr raw = 0;
    if (absl::Status s = context.check(
            context.driver().memAlloc(&raw, bytes),
            absl::StrCat("allocating ", bytes, " bytes for ", purpose));
        !s.ok())
      return s;
    memory.owned = {context, raw};
    memory.size = bytes;
    return memory;
  }

  CUdeviceptr address() const { return owned.get(); }
  /// As allocated.
  uint64_t bytes() const { return size; }

private:
  Owned<CUdeviceptr, &Driver::memFree> owned;
  uint64_t size = 0;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_DEVICEMEMORY_H
