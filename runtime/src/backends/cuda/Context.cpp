//===- Context.cpp - A GPU and its primary context ------------------------===//

#include "backends/cuda/Context.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<int> shardc::rt::cuda::countGpus(const Driver &driver) {
  int count = 0;
  if (absl::Status s = toStatus(driver, driver.deviceGetCount(&count),
                                "counting GPUs (cuDeviceGetCount)");
      !s.ok())
    return s;
  return count;
}

absl::StatusOr<GpuDescription>
shardc::rt::cuda::describeGpu(const Driver &driver, int ordinal) {
  absl::StatusOr<int> count = countGpus(driver);
  if (!count.ok())
    return count.status();
  if (ordinal >= *count)
    return absl::UnavailableError(absl::StrCat("GPU ", ordinal, " of ", *count,
                                               " that the driver shows"));
  auto failed = [&](CUresult result, const char *what) {
    return toStatus(driver, result, absl::StrCat(what, " of GPU ", ordinal));
  };
  GpuDescription gpu = {};
  if (absl::Status s =
          failed(driver.deviceGet(&gpu.device, ordinal), "cuDeviceGet");
      !s.ok())
    return s;
  char name[256] = "";
  if (absl::Status s =
          failed(driver.deviceGetName(name, sizeof(name), gpu.device),
                 "cuDeviceGetName");
      !s.ok())
    return s;
  gpu.name = name;
  int major = 0, minor = 0;
  for (auto [attribute, value] :
       {std::pair(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major),
        std::pair(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor)})
    if (absl::Status s =
            failed(driver.deviceGetAttribute(value, attribute, gpu.device),
                   "cuDeviceGetAttribute");
        !s.ok())
      return s;
  gpu.architecture = 10 * major + minor;
  return gpu;
}

absl::StatusOr<std::unique_ptr<cuda::Context>>
cuda::Context::create(const Driver &driver, int ordinal) {
  absl::StatusOr<GpuDescription> gpu = describeGpu(driver, ordinal);
  if (!gpu.ok())
    return gpu.status();
  std::unique_ptr<cuda::Context> context(
      new cuda::Context(driver, *std::move(gpu)));
  if (absl::Status s = toStatus(
          driver,
          driver.devicePrimaryCtxRetain(&context->context, context->gpu.device),
          absl::StrCat("cuDevicePrimaryCtxRetain of GPU ", ordinal));
      !s.ok()) {
    context->context = nullptr;
    return s;
  }
  if (absl::Status s = context->makeCurrent(); !s.ok())
    return s;
  return context;
}

cuda::Context::~Context() {
  if (context)
    (void)api->devicePrimaryCtxRelease(gpu.device);
}

absl::Status cuda::Context::makeCurrent() const {
  return check(api->ctxSetCurrent(context), "cuCtxSetCurrent");
}
