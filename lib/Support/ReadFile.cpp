//===- ReadFile.cpp - The content of a file -------------------------------===//

#include "shardc/Support/ReadFile.h"

#include "shardc/Support/InputFiles.h"

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
shardc::readFile(const std::string &path) {
  if (std::string error = checkIsFile(path); !error.empty())
    return llvm::createStringError(error);
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (std::error_code error = buffer.getError())
    return llvm::createStringError("cannot read '" + path +
                                   "': " + error.message());
  return std::move(*buffer);
}
