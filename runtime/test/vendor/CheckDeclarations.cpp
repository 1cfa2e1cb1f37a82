//===- CheckDeclarations.cpp - Ours against the vendor's ------------------===//
//
// Checks our declarations of the CUDA driver API and of cuBLASLt against the
// headers of the toolkit, and those of NCCL against its header if it is there.
// Compiled where they are; there is nothing to run.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CublasLt.h"
#include "backends/cuda/Nccl.h"

namespace ours = shardc::rt::cuda;
/// The headers have it as a macro.
constexpr unsigned portable = ours::CU_MEMHOSTALLOC_PORTABLE;

#include <cublasLt.h>
#include <cuda.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#define SAME(name) static_assert(int(ours::name) == int(::name))
#define SAME_PLACE(type, field)                                                \
  static_assert(offsetof(ours::type, field) == offsetof(::type, field))

SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_ERROR_NO_DEVICE);
SAME(CUDA_ERROR_INVALID_DEVICE);
SAME(CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ERROR_INVALID_PTX);
SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CUDA_ERROR_NOT_FOUND);
SAME(CUDA_ERROR_NOT_READY);
SAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_MEMORYTYPE_DEVICE);
static_assert(portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(sizeof(ours::CUdeviceptr) == sizeof(::CUdeviceptr));
static_assert(sizeof(ours::CUdevice) == sizeof(::CUdevice));
static_assert(sizeof(ours::CUDA_MEMCPY2D) == sizeof(::CUDA_MEMCPY2D));
SAME_PLACE(CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(CUDA_MEMCPY2D, Height);

SAME(CUBLAS_STATUS_SUCCESS);
SAME(CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUBLAS_STATUS_ARCH_MISMATCH);
SAME(CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CUDA_R_32F);
SAME(CUDA_R_16BF);
SAME(CUBLAS_COMPUTE_32F);
SAME(CUBLAS_COMPUTE_32F_FAST_16BF);
SAME(CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(CUBLAS_OP_N);
SAME(CUBLAS_OP_T);
SAME(CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CUBLASLT_EPILOGUE_DEFAULT);
SAME(CUBLASLT_EPILOGUE_RELU);
SAME(CUBLASLT_EPILOGUE_BIAS);
SAME(CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(CUBLASLT_EPILOGUE_BGRADA);
SAME(CUBLASLT_EPILOGUE_BGRADB);
SAME(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(ours::cublasLtMatmulHeuristicResult_t) ==
              sizeof(::cublasLtMatmulHeuristicResult_t));
SAME_PLACE(cublasLtMatmulHeuristicResult_t, workspaceSize);
SAME_PLACE(cublasLtMatmulHeuristicResult_t, state);

// Functions: as many parameters of the same sizes. Handles are pointers to
// types of our own.
template <typename Ours, typename Vendors>
struct IsSame : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct IsSame<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      // NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers themselves.
      return sizeof(R) == sizeof(S) && ((sizeof(A) == sizeof(B)) && ...) &&
             ((std::is_pointer_v<A> == std::is_pointer_v<B>)&&...);
    else
      return false;
  }();
};
#define SAME_CALL(table, member, function)                                     \
  static_assert(                                                               \
      IsSame<decltype(ours::table::member), decltype(&::function)>::value)

SAME_CALL(Driver, init, cuInit);
SAME_CALL(Driver, driverGetVersion, cuDriverGetVersion);
SAME_CALL(Driver, getErrorName, cuGetErrorName);
SAME_CALL(Driver, getErrorString, cuGetErrorString);
SAME_CALL(Driver, deviceGetCount, cuDeviceGetCount);
SAME_CALL(Driver, deviceGet, cuDeviceGet);
SAME_CALL(Driver, deviceGetName, cuDeviceGetName);
SAME_CALL(Driver, deviceGetAttribute, cuDeviceGetAttribute);
SAME_CALL(Driver, devicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
SAME_CALL(Driver, devicePrimaryCtxRelease, cuDevicePrimaryCtxRelease);
SAME_CALL(Driver, ctxSetCurrent, cuCtxSetCurrent);
SAME_CALL(Driver, moduleLoadDataEx, cuModuleLoadDataEx);
SAME_CALL(Driver, moduleUnload, cuModuleUnload);
SAME_CALL(Driver, moduleGetFunction, cuModuleGetFunction);
SAME_CALL(Driver, memGetInfo, cuMemGetInfo);
SAME_CALL(Driver, memAlloc, cuMemAlloc);
SAME_CALL(Driver, memFree, cuMemFree);
SAME_CALL(Driver, memHostAlloc, cuMemHostAlloc);
SAME_CALL(Driver, memFreeHost, cuMemFreeHost);
SAME_CALL(Driver, memcpyHtoDAsync, cuMemcpyHtoDAsync);
SAME_CALL(Driver, memcpyDtoHAsync, cuMemcpyDtoHAsync);
SAME_CALL(Driver, memcpyDtoDAsync, cuMemcpyDtoDAsync);
SAME_CALL(Driver, memcpy2DAsync, cuMemcpy2DAsync);
SAME_CALL(Driver, memsetD8Async, cuMemsetD8Async);
SAME_CALL(Driver, streamCreate, cuStreamCreate);
SAME_CALL(Driver, streamDestroy, cuStreamDestroy);
SAME_CALL(Driver, streamWaitEvent, cuStreamWaitEvent);
SAME_CALL(Driver, streamBeginCapture, cuStreamBeginCapture);
SAME_CALL(Driver, streamEndCapture, cuStreamEndCapture);
SAME_CALL(Driver, eventCreate, cuEventCreate);
SAME_CALL(Driver, eventDestroy, cuEventDestroy);
SAME_CALL(Driver, eventRecord, cuEventRecord);
SAME_CALL(Driver, eventQuery, cuEventQuery);
SAME_CALL(Driver, graphInstantiate, cuGraphInstantiateWithFlags);
SAME_CALL(Driver, graphLaunch, cuGraphLaunch);
SAME_CALL(Driver, graphExecDestroy, cuGraphExecDestroy);
SAME_CALL(Driver, graphDestroy, cuGraphDestroy);
SAME_CALL(Driver, launchKernel, cuLaunchKernel);
SAME_CALL(CublasLt, getVersion, cublasLtGetVersion);
SAME_CALL(CublasLt, create, cublasLtCreate);
SAME_CALL(CublasLt, destroy, cublasLtDestroy);
SAME_CALL(CublasLt, matmulDescCreate, cublasLtMatmulDescCreate);
SAME_CALL(CublasLt, matmulDescDestroy, cublasLtMatmulDescDestroy);
SAME_CALL(CublasLt, matmulDescSetAttribute, cublasLtMatmulDescSetAttribute);
SAME_CALL(CublasLt, matrixLayoutCreate, cublasLtMatrixLayoutCreate);
SAME_CALL(CublasLt, matrixLayoutDestroy, cublasLtMatrixLayoutDestroy);
SAME_CALL(CublasLt, matrixLayoutSetAttribute, cublasLtMatrixLayoutSetAttribute);
SAME_CALL(CublasLt, matmulPreferenceCreate, cublasLtMatmulPreferenceCreate);
SAME_CALL(CublasLt, matmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy);
SAME_CALL(CublasLt, matmulPreferenceSetAttribute,
          cublasLtMatmulPreferenceSetAttribute);
SAME_CALL(CublasLt, matmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic);
SAME_CALL(CublasLt, matmul, cublasLtMatmul);

#ifdef NCCL_MAJOR
SAME(ncclSuccess);
SAME(ncclUnhandledCudaError);
SAME(ncclSystemError);
SAME(ncclInvalidArgument);
SAME(ncclInvalidUsage);
SAME(ncclRemoteError);
SAME(ncclInProgress);
SAME(ncclUint8);
SAME(ncclInt32);
SAME(ncclInt64);
SAME(ncclFloat32);
SAME(ncclFloat64);
SAME(ncclBfloat16);
SAME(ncclSum);
SAME(ncclMax);
static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId));
// Later versions add to the end.
static_assert(sizeof(ours::ncclConfig_t) <= sizeof(::ncclConfig_t));
SAME_PLACE(ncclConfig_t, magic);
SAME_PLACE(ncclConfig_t, version);
SAME_PLACE(ncclConfig_t, blocking);
SAME_PLACE(ncclConfig_t, netName);
SAME_PLACE(ncclConfig_t, splitShare);
SAME_CALL(Nccl, getVersion, ncclGetVersion);
SAME_CALL(Nccl, getUniqueId, ncclGetUniqueId);
SAME_CALL(Nccl, commInitRankConfig, ncclCommInitRankConfig);
SAME_CALL(Nccl, commSplit, ncclCommSplit);
SAME_CALL(Nccl, commFinalize, ncclCommFinalize);
SAME_CALL(Nccl, commDestroy, ncclCommDestroy);
SAME_CALL(Nccl, commAbort, ncclCommAbort);
SAME_CALL(Nccl, commGetAsyncError, ncclCommGetAsyncError);
SAME_CALL(Nccl, getErrorString, ncclGetErrorString);
SAME_CALL(Nccl, getLastError, ncclGetLastError);
SAME_CALL(Nccl, groupStart, ncclGroupStart);
SAME_CALL(Nccl, groupEnd, ncclGroupEnd);
SAME_CALL(Nccl, allReduce, ncclAllReduce);
SAME_CALL(Nccl, allGather, ncclAllGather);
SAME_CALL(Nccl, reduceScatter, ncclReduceScatter);
SAME_CALL(Nccl, send, ncclSend);
SAME_CALL(Nccl, recv, ncclRecv);
#endif

// NVTX: numbers that a profiler and we have to agree on (Nvtx.cpp).
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
static_assert(NVTX_ETID_CALLBACKS == 1 && NVTX_ETID_VERSIONINFO == 3);
static_assert(NVTX_CB_MODULE_CORE == 1 && NVTX_CBID_CORE_SIZE == 16);
static_assert(NVTX_CBID_CORE_RangePushA == 9 && NVTX_CBID_CORE_RangePop == 11);
static_assert(sizeof(NvtxExportTableVersionInfo) == 24);
#endif
