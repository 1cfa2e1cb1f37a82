//===- Printable.h - Text that does nothing to a terminal -------*- C++ -*-===//
//
// In terms of the standard library alone. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_PRINTABLE_H
#define SHARDC_SUPPORT_PRINTABLE_H

#include <string>
#include <string_view>

namespace shardc {

/// Bytes of the character of UTF-8 that `text` begins with; 0: it is none, or
/// one that controls and is no tab or end of line.
size_t getCharacterBytes(std::string_view text);

/// `text` with the other bytes escaped: "\\x1b".
std::string makePrintable(std::string_view text);

} // namespace shardc

#endif // SHARDC_SUPPORT_PRINTABLE_H
