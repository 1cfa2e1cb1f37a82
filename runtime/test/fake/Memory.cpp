//===- Memory.cpp - The fake's memory and copies --------------------------===//

#include "State.h"

#include <cstdlib>
#include <cstring>
#include <map>

using namespace shardc::rt::test;

namespace {

struct Piece {
  uint64_t bytes;
  CUcontext context; ///< Null: pinned memory, which is for all.
};
std::map<uintptr_t, Piece> deviceMemory, pinnedMemory;

bool covers(const std::map<uintptr_t, Piece> &memory, uintptr_t address,
            uint64_t bytes) {
  auto next = memory.upper_bound(address);
  if (next == memory.begin())
    return false;
  --next;
  return address + bytes <= next->first + next->second.bytes &&
         (!next->second.context || next->second.context == current);
}

} // namespace

bool shardc::rt::test::isDevice(CUdeviceptr address, uint64_t bytes) {
  return covers(deviceMemory, address, bytes);
}

bool shardc::rt::test::isPinned(const void *address, uint64_t bytes) {
  return covers(pinnedMemory, reinterpret_cast<uintptr_t>(address), bytes);
}

extern "C" {

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
  *total = state().memoryBytes;
  *available = *total - state().bytesAllocated;
  return enter("cuMemGetInfo") ? injected : 0;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (enter("cuMemAlloc", text(bytes)) ||
      bytes > state().memoryBytes * state().gpus - state().bytesAllocated)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!current || captures > 0)
    return notPermitted;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!state().isIdle)
    std::memset(memory, 0x55, bytes);
  *address = reinterpret_cast<uintptr_t>(memory);
  deviceMemory[*address] = {bytes, current};
  state().bytesAllocated += bytes;
  ++state().live["device memory"];
  return 0;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  bool fails = enter("cuMemFree");
  drain();
  auto found = deviceMemory.find(address);
  if (found == deviceMemory.end())
    return invalid;
  state().bytesAllocated -= found->second.bytes;
  deviceMemory.erase(found);
  std::free(pointer(address));
  --state().live["device memory"];
  return fails ? injected : 0;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  if (enter("cuMemHostAlloc", text(bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!current || captures > 0)
    return notPermitted;
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  pinnedMemory[reinterpret_cast<uintptr_t>(*address)] = {bytes, nullptr};
  ++state().live["pinned memory"];
  return 0;
}

CUresult cuMemFreeHost(void *address) {
  bool fails = enter("cuMemFreeHost");
  drain();
  if (!pinnedMemory.erase(reinterpret_cast<uintptr_t>(address)))
    return invalid;
  std::free(address);
  --state().live["pinned memory"];
  return fails ? injected : 0;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream) {
  if (enter("cuMemcpyHtoDAsync", text(bytes)))
    return injected;
  if (!isDevice(to, bytes) || !isPinned(from, bytes))
    return invalid;
  return addWork(stream, [=] { std::memcpy(pointer(to), from, bytes); });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  if (enter("cuMemcpyDtoHAsync", text(bytes)))
    return injected;
  if (!isDevice(from, bytes) || !isPinned(to, bytes))
    return invalid;
  return addWork(stream, [=] { std::memcpy(to, pointer(from), bytes); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  if (enter("cuMemcpyDtoDAsync", text(bytes)))
    return injected;
  if (!isDevice(to, bytes) || !isDevice(from, bytes))
    return invalid;
  return addWork(stream, [=] {
    if (!state().isIdle)
      std::memcpy(pointer(to), pointer(from), bytes);
  });
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) {
  if (enter("cuMemcpy2DAsync",
            text(copy->WidthInBytes) + " x " + text(copy->Height)))
    return injected;
  CUDA_MEMCPY2D c = *copy;
  if (c.srcMemoryType != CU_MEMORYTYPE_DEVICE ||
      c.dstMemoryType != CU_MEMORYTYPE_DEVICE || c.srcPitch < c.WidthInBytes ||
      c.dstPitch < c.WidthInBytes ||
      !isDevice(c.srcDevice, (c.Height - 1) * c.srcPitch + c.WidthInBytes) ||
      !isDevice(c.dstDevice, (c.Height - 1) * c.dstPitch + c.WidthInBytes))
    return invalid;
  return addWork(stream, [=] {
    if (state().isIdle)
      return;
    for (size_t row = 0; row < c.Height; ++row)
      std::memcpy(pointer(c.dstDevice + row * c.dstPitch),
                  pointer(c.srcDevice + row * c.srcPitch), c.WidthInBytes);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  if (enter("cuMemsetD8Async", text(value) + ", " + text(count)))
    return injected;
  if (!isDevice(to, count))
    return invalid;
  return addWork(stream, [=] { std::memset(pointer(to), value, count); });
}

} // extern "C"
