//===- TargetSpec.h - Names of targets --------------------------*- C++ -*-===//
//
// The form in which command lines name targets: "cpu", "cpu:x86-64-v3",
// "cuda:sm_90", "emulated-gpu". Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_TARGETSPEC_H
#define SHARDC_SUPPORT_TARGETSPEC_H

#include <optional>
#include <string>

namespace shardc {

/// The target of code generation.
struct TargetSpec {
  enum class Kind {
    CPU,
    CUDA,
    /// For tests: the kernels of a GPU, emulated on the CPU.
    EmulatedGPU,
  };
  Kind kind = Kind::CPU;
  /// The only level of x86-64 that code is generated for, such as "x86-64-v3";
  /// empty: all of them (CPU).
  std::string cpuLevel;
  /// The GPU's architecture, such as "sm_90" (CUDA).
  std::string chip;
};

/// Reads "cpu", "emulated-gpu", or "cpu:" or "cuda:" with an architecture. On
/// failure `error` names the fault and the expected form.
std::optional<TargetSpec> parseTargetSpec(const std::string &text,
                                          std::string &error);

} // namespace shardc

#endif // SHARDC_SUPPORT_TARGETSPEC_H
