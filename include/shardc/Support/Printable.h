//===- Printable.h - Escapes control characters for terminals ---*- C++ -*-===//
//
// In terms of the standard library alone. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_PRINTABLE_H
#define SHARDC_SUPPORT_PRINTABLE_H

#include <string>
#include <string_view>

namespace shardc {

/// Bytes of the UTF-8 character at the start of `text`; 0 if there is none, or
/// if it is a control character other than tab and end of line.
size_t getCharacterBytes(std::string_view text);

/// `text` with all other bytes escaped: "\\x1b".
std::string makePrintable(std::string_view text);

} // namespace shardc

#endif // SHARDC_SUPPORT_PRINTABLE_H
