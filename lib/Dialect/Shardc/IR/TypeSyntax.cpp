//===- TypeSyntax.cpp - Lists of types that may be empty ------------------===//

#include "TypeSyntax.h"

using namespace mlir;

ParseResult shardc::parseTypesOrNone(OpAsmParser &parser,
                                     SmallVectorImpl<Type> &types) {
  if (succeeded(parser.parseOptionalLParen()))
    return parser.parseRParen();
  return parser.parseTypeList(types);
}

void shardc::printTypesOrNone(OpAsmPrinter &printer, Operation *,
                              TypeRange types) {
  if (types.empty())
    printer << "()";
  else
    llvm::interleaveComma(types, printer);
}
