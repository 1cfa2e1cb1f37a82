//===- BuildPlan.h - The executable plan of a module ------------*- C++ -*-===//
//
// The last phase. Stateless; thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_PLAN_BUILDPLAN_H
#define SHARDC_TARGET_PLAN_BUILDPLAN_H

#include "shardc/Target/CPU/CompileKernels.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace shardc {

/// The content of a plan beside the module.
struct PlanOptions {
  /// Name of the model; empty: the module's, or "model".
  std::string model;
  std::string producer = "shardc 0.1.0";
  /// The CPUs that kernels are compiled for, from the one with the fewest
  /// features on; unused if the kernels are for a GPU.
  std::vector<const CpuTarget *> cpuTargets = {&getBaseTarget()};
  /// The program that makes machine code of the PTX; empty: none does.
  std::string ptxas;
  /// Whether its failure is an error; otherwise it is a warning.
  bool needsCubin = true;
  /// The explanation as JSON (docs/Explain.md); may be empty.
  std::string explanation;
  /// The precision that factors of GEMMs of f32 may be rounded to: "highest",
  /// "tf32" or "bf16".
  std::string matmulPrecision = "highest";
  /// The machine of the time estimates (loadMachine).
  std::string machine = "cpu";
};

/// Compiles the kernels of `module`, which has gone through all phases up to
/// `codegen`, and returns the bytes of its plan. Equal modules give equal
/// bytes.
llvm::Expected<std::string> compilePlan(mlir::ModuleOp module,
                                        const PlanOptions &options = {});

} // namespace shardc

#endif // SHARDC_TARGET_PLAN_BUILDPLAN_H
