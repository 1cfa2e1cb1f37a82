//===- QuoteForShell.h - Arguments of commands to copy ---------*- C++ -*-===//
//
// In terms of the standard library alone. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_QUOTEFORSHELL_H
#define SHARDC_SUPPORT_QUOTEFORSHELL_H

#include <string>
#include <string_view>

namespace shardc {

/// `argument` as a word of a command on one line: as it is, if a POSIX shell
/// takes it so, or in single quotes. With control characters in $'...', which
/// bash and zsh know, and POSIX since 2024.
std::string quoteForShell(std::string_view argument);

} // namespace shardc

#endif // SHARDC_SUPPORT_QUOTEFORSHELL_H
