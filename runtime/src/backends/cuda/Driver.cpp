//===- Driver.cpp - Our subset of the CUDA driver API ---------------------===//

#include "backends/cuda/Driver.h"

#include "backends/cuda/DriverStatus.h"

using namespace shardc::rt::cuda;

absl::StatusOr<std::unique_ptr<Driver>> Driver::open(const std::string &path) {
  absl::StatusOr<SharedLibrary> library = SharedLibrary::open(
      "CUDA driver", {path.empty() ? std::string("libcuda.so.1") : path});
  if (!library.ok())
    return library.status();
  std::unique_ptr<Driver> driver(new Driver(*std::move(library)));
  if (absl::Status s = driver->library.resolve({
          {"cuInit", &driver->init},
          {"cuDriverGetVersion", &driver->driverGetVersion},
          {"cuGetErrorName", &driver->getErrorName},
          {"cuGetErrorString", &driver->getErrorString},
          {"cuDeviceGetCount", &driver->deviceGetCount},
          {"cuDeviceGet", &driver->deviceGet},
          {"cuDeviceGetName", &driver->deviceGetName},
          {"cuDeviceGetAttribute", &driver->deviceGetAttribute},
          {"cuDevicePrimaryCtxRetain", &driver->devicePrimaryCtxRetain},
          {"cuDevicePrimaryCtxRelease_v2", &driver->devicePrimaryCtxRelease},
          {"cuCtxSetCurrent", &driver->ctxSetCurrent},
          {"cuModuleLoadDataEx", &driver->moduleLoadDataEx},
          {"cuModuleUnload", &driver->moduleUnload},
          {"cuModuleGetFunction", &driver->moduleGetFunction},
          {"cuMemGetInfo_v2", &driver->memGetInfo},
          {"cuMemAlloc_v2", &driver->memAlloc},
          {"cuMemFree_v2", &driver->memFree},
          {"cuMemHostAlloc", &driver->memHostAlloc},
          {"cuMemFreeHost", &driver->memFreeHost},
          {"cuMemcpyHtoDAsync_v2", &driver->memcpyHtoDAsync},
          {"cuMemcpyDtoHAsync_v2", &driver->memcpyDtoHAsync},
          {"cuMemcpyDtoDAsync_v2", &driver->memcpyDtoDAsync},
          {"cuMemcpy2DAsync_v2", &driver->memcpy2DAsync},
          {"cuMemsetD8Async", &driver->memsetD8Async},
          {"cuStreamCreate", &driver->streamCreate},
          {"cuStreamDestroy_v2", &driver->streamDestroy},
          {"cuStreamWaitEvent", &driver->streamWaitEvent},
          {"cuStreamBeginCapture_v2", &driver->streamBeginCapture},
          {"cuStreamEndCapture", &driver->streamEndCapture},
          {"cuEventCreate", &driver->eventCreate},
          {"cuEventDestroy_v2", &driver->eventDestroy},
          {"cuEventRecord", &driver->eventRecord},
          {"cuEventRecordWithFlags", &driver->eventRecordWithFlags},
          {"cuEventQuery", &driver->eventQuery},
          {"cuEventElapsedTime", &driver->eventElapsedTime},
          {"cuGraphInstantiateWithFlags", &driver->graphInstantiate},
          {"cuGraphLaunch", &driver->graphLaunch},
          {"cuGraphExecDestroy", &driver->graphExecDestroy},
          {"cuGraphDestroy", &driver->graphDestroy},
          {"cuLaunchKernel", &driver->launchKernel},
      });
      !s.ok())
    return s;
  // A library without a GPU behind it fails here, with one of several codes.
  if (CUresult result = driver->init(0); result != CUDA_SUCCESS)
    return absl::UnavailableError(
        toStatus(*driver, result, "starting the driver (cuInit)").message());
  return driver;
}
