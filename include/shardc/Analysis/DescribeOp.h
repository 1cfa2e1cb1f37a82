//===- DescribeOp.h - Short texts for ops -----------------------*- C++ -*-===//
//
// For LLVM_DEBUG lines, which name ops without printing them. Thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_DESCRIBEOP_H
#define SHARDC_ANALYSIS_DESCRIBEOP_H

#include "shardc/Analysis/ModuleQueries.h"

namespace shardc {

/// "dot_general at mlp.mlir:12": the name of `op` without the dialect, and the
/// line of the model that it comes from.
inline std::string describeOp(mlir::Operation *op) {
  return op->getName().stripDialect().str() + " at " +
         getSourceLine(op->getLoc());
}

} // namespace shardc

#endif // SHARDC_ANALYSIS_DESCRIBEOP_H
