//===- Help.h - The layout of --help ----------------------------*- C++ -*-===//
//
// In terms of the standard library alone. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_HELP_H
#define SHARDC_SUPPORT_HELP_H

#include <string>
#include <string_view>

namespace shardc {

/// Most columns of a line of help.
constexpr size_t helpWidth = 100;

/// A help that LLVM or CLI11 wrote, in lines of at most `helpWidth` columns.
/// Every description begins in one column, below its flag if that is too long.
/// Words are never broken.
std::string layOutHelp(std::string_view help);

} // namespace shardc

#endif // SHARDC_SUPPORT_HELP_H
