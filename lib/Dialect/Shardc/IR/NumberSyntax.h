//===- NumberSyntax.h - Numbers in attributes -------------------*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SHARDC_IR_NUMBERSYNTAX_H
#define SHARDC_LIB_DIALECT_SHARDC_IR_NUMBERSYNTAX_H

#include "mlir/IR/OpImplementation.h"

namespace shardc {

/// A number, written as an integer or with a decimal point.
mlir::ParseResult parseNumber(mlir::AsmParser &parser, double &value);

/// The shortest text that reads back as `number`, an f64 attribute, as a person
/// would write it.
void printNumber(mlir::AsmPrinter &printer, mlir::Attribute number);

} // namespace shardc

#endif // SHARDC_LIB_DIALECT_SHARDC_IR_NUMBERSYNTAX_H
