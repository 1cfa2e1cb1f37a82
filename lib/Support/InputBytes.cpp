//===- InputBytes.cpp - The kind of a file by its first bytes -------------===//

#include "shardc/Support/InputBytes.h"

#include "shardc/Support/Printable.h"

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
  if (bytes.starts_with(bytecode))
    return "";
  // MLIR would print the line as it is, even to a terminal.
  for (std::string_view rest(bytes); !rest.empty();) {
    size_t size = rest[0] == '\r' ? 1 : getCharacterBytes(rest);
    if (size == 0)
      return "expected a model or other IR, found a file that is not text: "
             "line " +
             std::to_string(bytes.drop_back(rest.size()).count('\n') + 1) +
             " has the byte " + makePrintable(rest.substr(0, 1));
    rest.remove_prefix(size);
  }
  return "";
}
