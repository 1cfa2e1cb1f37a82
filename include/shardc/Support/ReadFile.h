//===- ReadFile.h - The content of a file -----------------------*- C++ -*-===//

#ifndef SHARDC_SUPPORT_READFILE_H
#define SHARDC_SUPPORT_READFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace shardc {

/// The bytes of a regular file, or an error such as "cannot read 'p.shardc':
/// No such file or directory". Pipes and devices are errors.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(const std::string &path);

} // namespace shardc

#endif // SHARDC_SUPPORT_READFILE_H
