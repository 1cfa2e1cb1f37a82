//===- WriteFile.h - A file from its content --------------------*- C++ -*-===//

#ifndef SHARDC_SUPPORT_WRITEFILE_H
#define SHARDC_SUPPORT_WRITEFILE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace shardc {

/// Writes `bytes` to `path` ("-": standard output). Returns the error, such as
/// "cannot write 'p.shardc': No space left on device", or ""; what an error
/// leaves of a file is removed.
std::string writeFile(const std::string &path, llvm::StringRef bytes);

} // namespace shardc

#endif // SHARDC_SUPPORT_WRITEFILE_H
