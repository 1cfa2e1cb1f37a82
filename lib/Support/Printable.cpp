//===- Printable.cpp - Escapes control characters for terminals -----------===//

#include "shardc/Support/Printable.h"

#include <algorithm>
#include <cstdint>

using namespace shardc;

size_t shardc::getCharacterBytes(std::string_view text) {
  auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
  };
  uint8_t first = byte(0);
  if (first < 0x80)
    return (first >= 0x20 && first != 0x7f) || first == '\n' || first == '\t';
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4)
    return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  // U+0080 to U+009F are control characters.
  return first == 0xc2 && byte(1) < 0xa0 ? 0 : size;
}

std::string shardc::makePrintable(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    size_t size = getCharacterBytes(text);
    if (size) {
      shown += text.substr(0, size);
    } else {
      uint8_t byte = text[0];
      shown += std::string("\\x") + digits[byte / 16] + digits[byte % 16];
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return shown;
}
