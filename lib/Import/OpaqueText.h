//===- OpaqueText.h - Attributes of dialects that are not there -*- C++ -*-===//
//
// MLIR keeps an attribute such as #stablehlo.dot<lhs_contracting_dimensions =
// [1]> as its text. These read a field out of it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_IMPORT_OPAQUETEXT_H
#define SHARDC_LIB_IMPORT_OPAQUETEXT_H

#include "mlir/IR/Attributes.h"

namespace shardc {

/// The text between the angle brackets of `attribute`; "" if it is none.
llvm::StringRef getOpaqueText(mlir::Attribute attribute);

/// The numbers of `field = [1, 2]` in `attribute`; none if it has no such
/// field.
llvm::SmallVector<int64_t> getNumbers(mlir::Attribute attribute,
                                      llvm::StringRef field);

/// The number of `field = 1`, or `standard`.
int64_t getNumber(mlir::Attribute attribute, llvm::StringRef field,
                  int64_t standard);

/// The last word: LT of #stablehlo<comparison_direction LT>.
llvm::StringRef getLastWord(mlir::Attribute attribute);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_OPAQUETEXT_H
