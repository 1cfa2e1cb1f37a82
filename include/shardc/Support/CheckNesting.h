//===- CheckNesting.h - How deep the brackets of a text nest ----*- C++ -*-===//
//
// MLIR's parser calls itself for every bracket and has no limit: deep nesting
// overflows the stack. So texts are checked before they are parsed. A pure
// function.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_CHECKNESTING_H
#define SHARDC_SUPPORT_CHECKNESTING_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace shardc {

/// The most brackets that may be open at once; models need less than ten.
constexpr int maxBrackets = 256;

/// Checks that at most maxBrackets of (, [, { and < are open at once in `text`,
/// a module as text, strings and comments left out. Returns "" or an error
/// "NAME:LINE:COLUMN: error: ..." about the first bracket too many. Bytecode
/// has no brackets and is not checked.
std::string checkNesting(llvm::StringRef text, llvm::StringRef name);

} // namespace shardc

#endif // SHARDC_SUPPORT_CHECKNESTING_H
