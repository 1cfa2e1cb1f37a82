//===- PinnedMemory.h - Memory of the host that GPUs copy from --*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_PINNEDMEMORY_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_PINNEDMEMORY_H

#include "backends/cuda/Owned.h"

#include <cstdint>
#include <cstring>

namespace shardc::rt::cuda {

/// Page-locked bytes: copies from and to them overlap with other work. Zero at
/// first.
class PinnedMemory {
public:
  PinnedMemory() = default;
  /// Nothing is allocated for 0 bytes. ResourceExhausted names `purpose`.
  [[nodiscard]] static absl::StatusOr<PinnedMemory>
  allocate(const Context &context, uint64_t bytes, absl::string_view purpose) {
    PinnedMemory memory;
    if (bytes == 0)
      return memory;
    if (absl::Status s = context.makeCurrent(); !s.ok())
      return s;
    void *raw = nullptr;
    if (absl::Status s =
            context.check(context.driver().memHostAlloc(
                              &raw, bytes, CU_MEMHOSTALLOC_PORTABLE),
                          absl::StrCat("pinning ", bytes,
                                       " bytes of the host for ", purpose));
        !s.ok())
      return s;
    memory.owned = {context, raw};
    std::memset(raw, 0, bytes);
    return memory;
  }

  char *data() const { return static_cast<char *>(owned.get()); }

private:
  Owned<void *, &Driver::memFreeHost> owned;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_PINNEDMEMORY_H
