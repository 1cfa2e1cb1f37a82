//===- TypeSyntax.h - Lists of types that may be empty ----------*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SHARDC_IR_TYPESYNTAX_H
#define SHARDC_LIB_DIALECT_SHARDC_IR_TYPESYNTAX_H

#include "mlir/IR/OpImplementation.h"

namespace shardc {

/// A list of types, or `()` for none.
mlir::ParseResult parseTypesOrNone(mlir::OpAsmParser &parser,
                                   llvm::SmallVectorImpl<mlir::Type> &types);
void printTypesOrNone(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                      mlir::TypeRange types);

} // namespace shardc

#endif // SHARDC_LIB_DIALECT_SHARDC_IR_TYPESYNTAX_H
