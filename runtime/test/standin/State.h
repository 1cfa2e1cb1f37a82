//===- State.h - What the parts of the stand-in share -----------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_STANDIN_STATE_H
#define SHARDC_RT_TEST_STANDIN_STATE_H

#include "StandIn.h"

#include "backends/cuda/CublasLt.h"
#include "backends/cuda/Driver.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace shardc::rt::test {

using namespace shardc::rt::cuda;

StandIn &state();

/// Records a call; whether it is to fail.
bool enter(const std::string &name, const std::string &arguments = "");

/// Whether memory of the GPU, or pinned memory of the host, has these bytes.
bool isDevice(CUdeviceptr address, uint64_t bytes);
bool isPinned(const void *address, uint64_t bytes);

/// Runs `work` on a stream: at once, or when what it is captured in is
/// launched.
CUresult addWork(CUstream stream, std::function<void()> work);

/// What a kernel of a module gets: its arguments, as its PTX declares them.
using KernelBody = std::function<void(
    const std::vector<std::vector<char>> &arguments, unsigned blocks)>;

/// The body of a kernel of the runtime or of `StandIn::kernelLibrary`; empty if
/// there is none.
KernelBody findKernel(const std::string &name);

/// The bytes of each parameter of entry `name` of a PTX text; empty if it has
/// no such entry.
std::vector<size_t> parameterSizes(const std::string &ptx,
                                   const std::string &name);

inline void *pointer(CUdeviceptr address) {
  return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_STANDIN_STATE_H
