//===- InputFiles.h - Inputs without an end ---------------------*- C++ -*-===//
//
// In terms of the standard library and POSIX alone.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_INPUTFILES_H
#define SHARDC_SUPPORT_INPUTFILES_H

#include <string>

namespace shardc {

/// Why the file at `path` ("-": standard input) cannot be read to its end, or
/// "": it is a device that never ends, such as /dev/zero.
std::string checkInputEnds(const std::string &path);

} // namespace shardc

#endif // SHARDC_SUPPORT_INPUTFILES_H
