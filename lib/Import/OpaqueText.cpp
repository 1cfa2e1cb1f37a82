//===- OpaqueText.cpp - Attributes of dialects that are not there ---------===//

#include "OpaqueText.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

StringRef shardc::getOpaqueText(Attribute attribute) {
  auto opaque = dyn_cast_or_null<OpaqueAttr>(attribute);
  if (!opaque)
    return "";
  StringRef text = opaque.getAttrData();
  size_t open = text.find('<');
  size_t close = text.rfind('>');
  if (open == StringRef::npos || close == StringRef::npos || close < open)
    return text;
  return text.slice(open + 1, close);
}

/// What follows `field =` in the text of `attribute`.
static StringRef getField(Attribute attribute, StringRef field) {
  StringRef text = shardc::getOpaqueText(attribute);
  for (size_t at = text.find(field); at != StringRef::npos;
       at = text.find(field, at + 1)) {
    StringRef rest = text.drop_front(at + field.size()).ltrim();
    bool isWhole =
        at == 0 || (!llvm::isAlnum(text[at - 1]) && text[at - 1] != '_');
    if (isWhole && rest.consume_front("="))
      return rest.ltrim();
  }
  return "";
}

SmallVector<int64_t> shardc::getNumbers(Attribute attribute, StringRef field) {
  SmallVector<int64_t> numbers;
  StringRef rest = getField(attribute, field);
  if (!rest.consume_front("["))
    return numbers;
  SmallVector<StringRef> parts;
  rest.take_until([](char c) { return c == ']'; })
      .split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t number = 0;
    if (!part.trim().getAsInteger(10, number))
      numbers.push_back(number);
  }
  return numbers;
}

int64_t shardc::getNumber(Attribute attribute, StringRef field,
                          int64_t standard) {
  StringRef digits = getField(attribute, field).take_while(llvm::isDigit);
  int64_t number = standard;
  return digits.getAsInteger(10, number) ? standard : number;
}

StringRef shardc::getLastWord(Attribute attribute) {
  StringRef text = getOpaqueText(attribute).rtrim();
  return text.drop_front(text.rfind(' ') + 1);
}
