//===- InputBytes.cpp - Kinds of files by their first bytes ---------------===//

#include "shardc/Support/InputBytes.h"

bool shardc::beginsAsPlan(llvm::StringRef bytes) {
  // A flatbuffer: the offset of its root, then the identifier of the schema.
  constexpr size_t offsetSize = 4;
  return bytes.drop_front(std::min(offsetSize, bytes.size()))
      .starts_with("SHRD");
}

std::string shardc::checkIsSource(llvm::StringRef bytes) {
  constexpr llvm::StringLiteral bytecode("ML\xefR");
  if (beginsAsPlan(bytes))
    return "expected a model or other IR, found a plan";
  if (!bytes.starts_with(bytecode) && bytes.contains('\0'))
    return "expected a model or other IR, found a file that is not text";
  return "";
}
