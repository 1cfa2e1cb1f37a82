//===- Module.cpp - Kernels on a GPU --------------------------------------===//

#include "backends/cuda/Module.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include <cstdint>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

bool Code::hasCubinFor(int architecture) const {
  int made = 0;
  return !cubin.empty() &&
         absl::SimpleAtoi(absl::StripPrefix(chip, "sm_"), &made) &&
         made / 10 == architecture / 10 && made <= architecture;
}

/// Lets the driver compile PTX.
static absl::StatusOr<CUmodule> compile(const cuda::Context &context,
                                        const std::string &ptx,
                                        absl::string_view what) {
  constexpr size_t logBytes = 8192;
  std::vector<char> log(logBytes);
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(),
                    reinterpret_cast<void *>(static_cast<uintptr_t>(logBytes))};
  CUmodule raw = nullptr;
  // The image is text that ends with a zero, which c_str() promises.
  CUresult result =
      context.driver().moduleLoadDataEx(&raw, ptx.c_str(), 2, options, values);
  if (absl::Status s = context.check(
          result, absl::StrCat("compiling ", what, " for ", context.name(),
                               " (sm_", context.architecture(), ")"));
      !s.ok()) {
    log.back() = 0;
    if (!log[0])
      return s;
    return absl::Status(
        s.code(), absl::StrCat(s.message(),
                               "\nthe driver's compiler says: ", log.data()));
  }
  return raw;
}

absl::StatusOr<Module> Module::load(const cuda::Context &context,
                                    const Code &code,
                                    absl::Span<const std::string> kernels,
                                    absl::string_view what) {
  Module module;
  if (kernels.empty())
    return module;
  if (absl::Status s = context.makeCurrent(); !s.ok())
    return s;
  CUmodule raw = nullptr;
  if (code.hasCubinFor(context.architecture())) {
    CUresult result = context.driver().moduleLoadDataEx(&raw, code.cubin.data(),
                                                        0, nullptr, nullptr);
    if (result == CUDA_ERROR_INVALID_IMAGE ||
        result == CUDA_ERROR_NO_BINARY_FOR_GPU)
      raw = nullptr;
    else if (absl::Status s = context.check(
                 result, absl::StrCat("loading ", what, " for ", code.chip));
             !s.ok())
      return s;
  }
  if (!raw) {
    absl::StatusOr<CUmodule> compiled = compile(context, code.ptx, what);
    if (!compiled.ok())
      return compiled.status();
    raw = *compiled;
  }
  module.owned = {context, raw};
  for (const std::string &name : kernels) {
    CUfunction function = nullptr;
    if (absl::Status s = context.check(
            context.driver().moduleGetFunction(&function, raw, name.c_str()),
            absl::StrCat("kernel \"", name, "\" of ", what));
        !s.ok())
      return s;
    module.functions.push_back(function);
  }
  return module;
}
