//===- BuildPlan.h - The executable plan of a module ------------*- C++ -*-===//
//
// The last phase. Stateless; thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_PLAN_BUILDPLAN_H
#define SHARDC_TARGET_PLAN_BUILDPLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace shardc {

/// The content of a plan beside the module.
struct PlanOptions {
  /// Name of the model; empty: the module's, or "model".
  std::string model;
  std::string producer = "shardc 0.1.0";
  /// The shared object of the kernels, or their PTX if there is a GPU.
  std::string code;
  /// The shared object for CPUs with AVX-512, with the same kernels; may be
  /// empty.
  std::string wideCode;
  /// Whether `compilePlan` makes it.
  bool makeWideCode = false;
  /// The machine code that `ptxas` makes of that PTX; may be empty.
  std::string cubin;
  /// The program that makes it; empty: none does.
  std::string ptxas;
  /// Whether its failure is `compilePlan`'s; otherwise it is a warning.
  bool needsCubin = true;
  /// The GPU that they are for, such as "sm_90"; empty: the CPU.
  std::string gpuTarget;
  /// The explanation as JSON (docs/Explain.md); may be empty.
  std::string explanation;
  /// The precision that factors of GEMMs of f32 may be rounded to: "highest",
  /// "tf32" or "bf16".
  std::string matmulPrecision = "highest";
  /// The machine of the time estimates (loadMachine).
  std::string machine = "cpu";
};

/// The bytes of the plan of `module`, which has gone through all phases up to
/// `codegen`. Equal modules give equal bytes.
llvm::Expected<std::string> buildPlan(mlir::ModuleOp module,
                                      const PlanOptions &options);

/// Compiles the kernels of `module` (phase `codegen` done) and builds its plan.
llvm::Expected<std::string> compilePlan(mlir::ModuleOp module,
                                        PlanOptions options = {});

} // namespace shardc

#endif // SHARDC_TARGET_PLAN_BUILDPLAN_H
