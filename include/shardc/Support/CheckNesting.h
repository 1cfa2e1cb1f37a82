//===- CheckNesting.h - Limits the nesting of brackets in a text ----------===//
//
// MLIR's parser recurses for every bracket, without a limit, so deep nesting
// overflows the stack. Texts are therefore checked before they are parsed. A
// pure function.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_CHECKNESTING_H
#define SHARDC_SUPPORT_CHECKNESTING_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace shardc {

/// The most brackets that may be open at once; models need less than ten.
constexpr int maxBrackets = 256;

/// A place with too many open brackets; line and column from 1.
struct DeepNesting {
  int64_t line, column;
  std::string message;
};

/// The first bracket of `text` too many, as `checkNesting` counts them.
std::optional<DeepNesting> findDeepNesting(llvm::StringRef text);

/// Checks that at most maxBrackets of (, [, { and < are open at once in `text`,
/// the text of a module, outside of strings and comments. Returns "" or an
/// error "NAME:LINE:COLUMN: error: ..." at the first bracket too many. Bytecode
/// has no brackets and is not checked.
std::string checkNesting(llvm::StringRef text, llvm::StringRef name);

} // namespace shardc

#endif // SHARDC_SUPPORT_CHECKNESTING_H
