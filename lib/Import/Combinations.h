//===- Combinations.h - Sums, products and extrema --------------*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_COMBINATIONS_H
#define SHARDC_LIB_IMPORT_COMBINATIONS_H

#include "Lowering.h"

namespace shardc {

enum class Combination { Sum, Product, Max, Min };

/// The combination that the body of a reduction, or of an update by index,
/// computes from its two arguments.
std::optional<Combination> getCombination(mlir::Block &body);

mlir::Value combine(Arithmetic a, Combination kind, mlir::Value x,
                    mlir::Value y);

/// The number that does not change a combination of `element`s.
double getIdentity(Combination kind, mlir::Type element);

/// `x` without `dims`, in ascending order, which it combines: of `type`.
mlir::Value combineDims(Lowering &lowering, mlir::Location loc,
                        Combination kind, mlir::Value x,
                        llvm::ArrayRef<int64_t> dims,
                        mlir::RankedTensorType type);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_COMBINATIONS_H
