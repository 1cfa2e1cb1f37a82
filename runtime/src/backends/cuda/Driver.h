//===- Driver.h - Our subset of the CUDA driver API -------------*- C++ -*-===//
//
// Types, constants and signatures of libcuda as NVIDIA's "CUDA Driver API"
// reference documents them, so that no header of the toolkit is needed. Names
// of types are the vendor's; functions lose their prefix. Exported names with a
// version (_v2) are those that cuda.h of CUDA 11.4 to 13 maps the plain ones
// to.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_DRIVER_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_DRIVER_H

#include "backends/cuda/SharedLibrary.h"

#include <cstddef>
#include <memory>

namespace shardc::rt::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;
using CUarray = struct CUarray_st *;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_DEVICE = 101;
inline constexpr CUresult CUDA_ERROR_INVALID_IMAGE = 200;
inline constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;
inline constexpr CUresult CUDA_ERROR_INVALID_PTX = 218;
inline constexpr CUresult CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222;
inline constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;
inline constexpr CUresult CUDA_ERROR_NOT_READY = 600;
inline constexpr CUresult CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803;

// CUdevice_attribute.
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
// CUjit_option.
inline constexpr int CU_JIT_ERROR_LOG_BUFFER = 5;
inline constexpr int CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6;
// Flags.
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr unsigned CU_EVENT_RECORD_EXTERNAL = 1;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1;
// CUstreamCaptureMode.
inline constexpr int CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1;
// CUmemorytype.
inline constexpr int CU_MEMORYTYPE_DEVICE = 2;

struct CUDA_MEMCPY2D {
  size_t srcXInBytes;
  size_t srcY;
  int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes;
  size_t dstY;
  int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes;
  size_t Height;
};

/// The functions of an open libcuda, initialised. Immutable; any thread may
/// call them.
class Driver {
public:
  /// Opens `path`, or libcuda.so.1 if it is empty, and calls cuInit.
  /// Unavailable: no library, no device, or a driver that does not start.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Driver>>
  open(const std::string &path);

  CUresult (*init)(unsigned flags);
  CUresult (*driverGetVersion)(int *version);
  CUresult (*getErrorName)(CUresult error, const char **name);
  CUresult (*getErrorString)(CUresult error, const char **text);
  CUresult (*deviceGetCount)(int *count);
  CUresult (*deviceGet)(CUdevice *device, int ordinal);
  CUresult (*deviceGetName)(char *name, int length, CUdevice device);
  CUresult (*deviceGetAttribute)(int *value, int attribute, CUdevice device);
  CUresult (*devicePrimaryCtxRetain)(CUcontext *context, CUdevice device);
  CUresult (*devicePrimaryCtxRelease)(CUdevice device);
  CUresult (*ctxSetCurrent)(CUcontext context);
  CUresult (*moduleLoadDataEx)(CUmodule *module, const void *image,
                               unsigned numOptions, int *options,
                               void **values);
  CUresult (*moduleUnload)(CUmodule module);
  CUresult (*moduleGetFunction)(CUfunction *function, CUmodule module,
                                const char *name);
  CUresult (*memGetInfo)(size_t *available, size_t *total);
  CUresult (*memAlloc)(CUdeviceptr *address, size_t bytes);
  CUresult (*memFree)(CUdeviceptr address);
  CUresult (*memHostAlloc)(void **address, size_t bytes, unsigned flags);
  CUresult (*memFreeHost)(void *address);
  CUresult (*memcpyHtoDAsync)(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream);
  CUresult (*memcpyDtoHAsync)(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream);
  CUresult (*memcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream);
  CUresult (*memcpy2DAsync)(const CUDA_MEMCPY2D *copy, CUstream stream);
  CUresult (*memsetD8Async)(CUdeviceptr to, unsigned char value, size_t count,
                            CUstream stream);
  CUresult (*streamCreate)(CUstream *stream, unsigned flags);
  CUresult (*streamDestroy)(CUstream stream);
  CUresult (*streamWaitEvent)(CUstream stream, CUevent event, unsigned flags);
  CUresult (*streamBeginCapture)(CUstream stream, int mode);
  CUresult (*streamEndCapture)(CUstream stream, CUgraph *graph);
  CUresult (*eventCreate)(CUevent *event, unsigned flags);
  CUresult (*eventDestroy)(CUevent event);
  CUresult (*eventRecord)(CUevent event, CUstream stream);
  CUresult (*eventRecordWithFlags)(CUevent event, CUstream stream,
                                   unsigned flags);
  CUresult (*eventQuery)(CUevent event);
  CUresult (*eventElapsedTime)(float *milliseconds, CUevent from, CUevent to);
  CUresult (*graphInstantiate)(CUgraphExec *executable, CUgraph graph,
                               unsigned long long flags);
  CUresult (*graphLaunch)(CUgraphExec executable, CUstream stream);
  CUresult (*graphExecDestroy)(CUgraphExec executable);
  CUresult (*graphDestroy)(CUgraph graph);
  CUresult (*launchKernel)(CUfunction function, unsigned gridX, unsigned gridY,
                           unsigned gridZ, unsigned blockX, unsigned blockY,
                           unsigned blockZ, unsigned sharedBytes,
                           CUstream stream, void **parameters, void **extra);

private:
  explicit Driver(SharedLibrary library) : library(std::move(library)) {}

  SharedLibrary library;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_DRIVER_H
