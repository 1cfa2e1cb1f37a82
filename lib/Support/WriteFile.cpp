//===- WriteFile.cpp - A file from its content ----------------------------===//

#include "shardc/Support/WriteFile.h"

#include "shardc/Support/WriteErrors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

std::string shardc::writeFile(const std::string &path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_None);
  if (error)
    return "cannot write '" + path + "': " + error.message();
  file.os() << bytes;
  std::string message = finishOutput(file.os(), path);
  if (message.empty())
    file.keep();
  return message;
}
