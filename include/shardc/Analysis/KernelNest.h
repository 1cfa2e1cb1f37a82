//===- KernelNest.h - Classification of a kernel's loop nests ---*- C++ -*-===//
//
// Classifies a set of core ops by the single loop nest that computes them.
// Fusion asks whether a merged set still is one nest; code generation asks for
// the nests of a kernel's body. Both therefore agree. Pure functions of the IR:
// thread-safe on distinct modules.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_KERNELNEST_H
#define SHARDC_ANALYSIS_KERNELNEST_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <optional>
#include <vector>

namespace shardc {

/// Shapes of loop nests.
enum class NestKind {
  /// Every result element is computed on its own.
  Map,
  /// Reductions over trailing dimensions (or all), row by row: elementwise
  /// stages and reductions of the same rows alternate.
  Rows,
  /// Reductions over leading dimensions, a block of columns at a time. A CPU
  /// computes rows that are shorter than a vector so, too.
  Columns,
  /// One dot_general on register tiles, followed elementwise.
  Gemm,
};

/// One loop nest.
struct KernelNest {
  NestKind kind;
  /// The iteration shape: of the results (Map), of the reduced tensor (Rows,
  /// Columns), of the GEMM's result (Gemm).
  llvm::SmallVector<int64_t> shape;
  /// Dimensions of `shape` that are reduced, ascending.
  llvm::SmallVector<int64_t> reduced;
  /// The ops of the nest in order.
  llvm::SmallVector<mlir::Operation *> ops;
  /// Results that have the iteration shape.
  llvm::SmallVector<mlir::Value> fullResults;
  /// Results that have the shape without the reduced dimensions.
  llvm::SmallVector<mlir::Value> outerResults;
  /// Reductions by stage: those of a stage need only results of earlier ones.
  llvm::SmallVector<llvm::SmallVector<ReduceOp, 2>> stages;
  /// The first stage that can compute all full results; stages.size() if they
  /// need the last reductions.
  unsigned fullStage = 0;
  /// The op of a Gemm.
  DotGeneralOp dot;
};

/// Whether `op` computes each result element from the operand elements at the
/// same place.
bool isElementwise(mlir::Operation *op);

/// Whether `op` is cheaper to recompute at every use than to store: constants,
/// iotas, broadcasts and widened bf16.
bool isFreeToRepeat(mlir::Operation *op);

/// The arithmetic of `op` for each element on a CPU, in multiply-adds; of a
/// dot_general or a reduction that of a term.
int64_t getElementWork(mlir::Operation *op);

/// Whether elements that stand side by side in the result of `op` need not do
/// so in its operand: padding, concatenations, slices with strides, and
/// reshapes of computed values in another way than by adding or dropping
/// dimensions of size 1. Such an op has a kernel of its own, without lanes.
bool movesLanesApart(mlir::Operation *op);

/// The nest of `ops` (in order, closed under the SSA edges among them) whose
/// values `results` are used outside, or nullopt if they are not one nest. A
/// single reduction or dot_general outside the classes above is nullopt as
/// well: it is generated as a Map with inner scalar loops.
std::optional<KernelNest> classifyNest(llvm::ArrayRef<mlir::Operation *> ops,
                                       llvm::ArrayRef<mlir::Value> results);

/// What has the elements of a dot_general's operand in memory, in the same
/// order: the kernel's argument that the operand is a reshape of, or itself.
mlir::Value getFactorInMemory(mlir::Value factor);

/// The nests of a kernel's body, in order; each result of the kernel belongs to
/// exactly one. Ops not connected by SSA edges are different nests.
std::vector<KernelNest> getKernelNests(KernelOp kernel);

/// Whether result `result` of the kernel may occupy the buffer of operand
/// `operand`. It may if the iteration that writes an element is the only one to
/// read the operand's element in its place, and reads it first. `nests` are the
/// kernel's.
bool mayUpdateInPlace(KernelOp kernel, llvm::ArrayRef<KernelNest> nests,
                      unsigned operand, unsigned result);

} // namespace shardc

#endif // SHARDC_ANALYSIS_KERNELNEST_H
