//===- TargetSpec.h - What code is generated for, as text -------*- C++ -*-===//
//
// The form in which command lines name targets: "cpu", "cuda:sm_90",
// "emulated-gpu". Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_TARGETSPEC_H
#define SHARDC_SUPPORT_TARGETSPEC_H

#include <optional>
#include <string>

namespace shardc {

/// A machine to generate code for.
struct TargetSpec {
  enum class Kind {
    CPU,
    CUDA,
    /// For tests: what a GPU does, on the CPU.
    EmulatedGPU,
  };
  Kind kind = Kind::CPU;
  /// The GPU's architecture, such as "sm_90" (CUDA).
  std::string chip;
};

/// Reads "cpu", "emulated-gpu" or "cuda:" with an architecture. On failure
/// `error` says what was wrong and what was expected.
std::optional<TargetSpec> parseTargetSpec(const std::string &text,
                                          std::string &error);

} // namespace shardc

#endif // SHARDC_SUPPORT_TARGETSPEC_H
