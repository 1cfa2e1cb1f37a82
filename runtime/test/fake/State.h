//===- State.h - State that the parts of the fake share ---------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_FAKE_STATE_H
#define SHARDC_RT_TEST_FAKE_STATE_H

#include "Fake.h"

#include "backends/cuda/CublasLt.h"
#include "backends/cuda/Driver.h"
#include "backends/cuda/Nccl.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace shardc::rt::test {

using namespace shardc::rt::cuda;

Fake &state();

/// The context that is current; null at first.
extern CUcontext current;
/// That of GPU `device`.
CUcontext contextOf(CUdevice device);
/// Captures in progress: no allocation, compilation or wait is permitted
/// meanwhile.
extern int captures;

/// State between the ranks of a communicator; lives as long as the work given
/// to a stream.
struct Communication;

/// A collective that does not end: streams stop until its communicator is
/// aborted. Safe to call from any thread.
void setStuck(const Communication *communication, bool isStuck);
bool isStuck();

// Codes of the driver that the runtime has no name for.
inline constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE;
inline constexpr CUresult injected = 999; // CUDA_ERROR_UNKNOWN
inline constexpr CUresult unjoined = 904; // CUDA_ERROR_STREAM_CAPTURE_UNJOINED
inline constexpr CUresult isolation =
    905; // CUDA_ERROR_STREAM_CAPTURE_ISOLATION
inline constexpr CUresult otherContext = 400; // CUDA_ERROR_INVALID_HANDLE
inline constexpr CUresult notPermitted = 900; // ..._STREAM_CAPTURE_UNSUPPORTED

/// Records a call; whether it is to fail.
bool enter(const std::string &name, const std::string &arguments = "");

/// Whether memory of the GPU that is current, or pinned memory of the host, has
/// these bytes.
bool isDevice(CUdeviceptr address, uint64_t bytes);
bool isPinned(const void *address, uint64_t bytes);

/// Runs `work` on a stream of the current context: at once, or when the graph
/// that captures it is launched. With several GPUs it runs at a wait (`drain`):
/// a GPU may wait for another whose part is issued later.
CUresult addWork(CUstream stream, std::function<void()> work);

/// Runs the work of all GPUs, at the same time.
void drain();

/// The arguments of a kernel of a module, as its PTX declares them.
using KernelBody = std::function<void(
    const std::vector<std::vector<char>> &arguments, unsigned blocks)>;

/// Reduces `bytes` bytes of all of `in` to each of `out`, in the order of the
/// tree.
using RowReduction =
    std::function<void(const std::vector<const void *> &in,
                       const std::vector<void *> &out, uint64_t bytes)>;

/// That of elements of `type`, such as "f32"; empty if there is none.
RowReduction findReduction(const std::string &type, bool isSum);

/// The body of a kernel of the runtime or of the library `path`; empty if there
/// is none.
KernelBody findKernel(const std::string &name, const std::string &path = "");

/// The bytes of each parameter of entry `name` of a PTX text; empty if it has
/// no such entry.
std::vector<size_t> parameterSizes(const std::string &ptx,
                                   const std::string &name);

/// A handle of `kind` that now lives.
template <typename T>
CUresult give(T **place, const char *kind, std::unique_ptr<T> made) {
  *place = made.release();
  ++state().live[kind];
  return CUDA_SUCCESS;
}

/// Ends a handle even where the call is to fail, as drivers do, whose errors
/// are those of earlier work.
template <typename T>
CUresult take(T *handle, const char *kind, bool fails) {
  delete handle;
  --state().live[kind];
  return fails ? injected : CUDA_SUCCESS;
}

inline std::string text(uint64_t number) { return std::to_string(number); }

inline void *pointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

} // namespace shardc::rt::test

namespace shardc::rt::cuda {
/// The primary context of a GPU.
struct CUctx_st {
  /// Issued and not run yet.
  std::vector<std::function<void()>> works;
};
} // namespace shardc::rt::cuda

#endif // SHARDC_RT_TEST_FAKE_STATE_H
