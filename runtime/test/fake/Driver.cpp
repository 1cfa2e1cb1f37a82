//===- Driver.cpp - The fake's devices and kernels ------------------------===//

#include "State.h"

#include <cstdlib>
#include <cstring>

using namespace shardc::rt::test;

// Handles are objects of the types that the driver declares.
namespace shardc::rt::cuda {
struct CUfunc_st {
  std::string name;
  CUcontext context;
  std::vector<size_t> parameters;
  KernelBody body;
};
struct CUmod_st {
  CUcontext context;
  std::string library; ///< That has the kernels.
  std::string ptx;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};
} // namespace shardc::rt::cuda

CUcontext shardc::rt::test::current = nullptr;

CUcontext shardc::rt::test::contextOf(CUdevice device) {
  static std::map<CUdevice, CUctx_st> contexts;
  return &contexts[device];
}

Fake &shardc::rt::test::state() {
  static Fake fake = [] {
    Fake initial;
    if (const char *path = std::getenv("SHARDC_FAKE_KERNELS"))
      initial.kernelLibrary = path;
    if (const char *gpus = std::getenv("SHARDC_FAKE_GPUS"))
      initial.gpus = std::atoi(gpus);
    if (const char *idle = std::getenv("SHARDC_FAKE_IDLE"))
      initial.isIdle = std::atoi(idle) != 0;
    if (const char *bytes = std::getenv("SHARDC_FAKE_MEMORY"))
      initial.memoryBytes = std::strtoull(bytes, nullptr, 10);
    return initial;
  }();
  return fake;
}

extern "C" Fake *shardcFake() { return &state(); }

bool shardc::rt::test::enter(const std::string &name,
                             const std::string &arguments) {
  Fake &fake = state();
  fake.calls.push_back(name);
  fake.details.push_back(name + "(" + arguments + ")");
  return static_cast<int64_t>(fake.calls.size()) == fake.failAt;
}

/// The library of plan `number`.
static std::string kernelLibrary(int64_t number) {
  std::string all = state().kernelLibrary;
  for (size_t end; number > 0 && (end = all.find(':')) != std::string::npos;
       --number)
    all = all.substr(end + 1);
  return all.substr(0, all.find(':'));
}

extern "C" {

CUresult cuInit(unsigned) { return enter("cuInit") ? injected : 0; }

CUresult cuDriverGetVersion(int *version) {
  *version = 13000;
  return enter("cuDriverGetVersion") ? injected : 0;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == injected               ? "CUDA_ERROR_UNKNOWN"
          : error == CUDA_ERROR_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
                                            : "CUDA_ERROR_OF_THE_FAKE";
  return 0;
}

CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "said by the fake";
  return 0;
}

CUresult cuDeviceGetCount(int *count) {
  *count = state().gpus;
  return enter("cuDeviceGetCount") ? injected : 0;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet") ? injected : 0;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  if (enter("cuDeviceGetName"))
    return injected;
  std::strncpy(name, "Fake GPU", length);
  return 0;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  if (enter("cuDeviceGetAttribute"))
    return injected;
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
               ? state().architecture / 10
               : state().architecture % 10;
  return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  if (enter("cuDevicePrimaryCtxRetain"))
    return injected;
  *context = contextOf(device);
  ++state().live["context"];
  return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  bool fails = enter("cuDevicePrimaryCtxRelease");
  --state().live["context"];
  return fails ? injected : 0;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  if (enter("cuCtxSetCurrent"))
    return injected;
  current = context;
  return 0;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                            unsigned options, int *names, void **values) {
  std::string code = static_cast<const char *>(image);
  // The fake cannot read a real one; those of tests have their PTX behind the
  // first line.
  const bool isReal = code.rfind("\177ELF", 0) == 0;
  const bool isCubin = isReal || code.rfind("cubin\n", 0) == 0;
  if (enter("cuModuleLoadDataEx", isCubin ? "cubin" : "PTX"))
    return injected;
  if (captures > 0)
    return notPermitted;
  if (isReal)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (isCubin && state().cubinError != 0)
    return static_cast<CUresult>(state().cubinError);
  if (!isCubin && !state().jitError.empty()) {
    for (unsigned i = 0; i < options; ++i)
      if (names[i] == CU_JIT_ERROR_LOG_BUFFER)
        std::strcpy(static_cast<char *>(values[i]), state().jitError.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
  auto made = std::make_unique<CUmod_st>();
  made->context = current;
  made->ptx = std::move(code);
  // The runtime's own are those of the fake.
  if (made->ptx.find("shardc_reduce_sum_f32") == std::string::npos)
    made->library = kernelLibrary(state().plansLoaded++);
  return give(module, "module", std::move(made));
}

CUresult cuModuleUnload(CUmodule module) {
  return take(module, "module", enter("cuModuleUnload"));
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  if (enter("cuModuleGetFunction", name))
    return injected;
  auto made = std::make_unique<CUfunc_st>();
  made->name = name;
  made->context = module->context;
  made->parameters = parameterSizes(module->ptx, name);
  made->body = findKernel(name, module->library);
  if (made->parameters.empty() || !made->body)
    return CUDA_ERROR_NOT_FOUND;
  *function = made.get();
  module->functions.push_back(std::move(made));
  return 0;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **parameters, void **) {
  if (enter("cuLaunchKernel",
            function->name + ", " + text(gridX) + ", " + text(blockX)))
    return injected;
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || sharedBytes ||
      gridX == 0 || blockX == 0 || blockX > 1024)
    return invalid;
  if (function->context != current)
    return otherContext;
  std::vector<std::vector<char>> arguments;
  for (size_t i = 0; i < function->parameters.size(); ++i) {
    const char *from = static_cast<const char *>(parameters[i]);
    arguments.emplace_back(from, from + function->parameters[i]);
  }
  return addWork(stream, [body = function->body, arguments, gridX] {
    if (!state().isIdle)
      body(arguments, gridX);
  });
}

} // extern "C"
