//===- WriteErrors.h - What did not reach an output -------------*- C++ -*-===//

#ifndef SHARDC_SUPPORT_WRITEERRORS_H
#define SHARDC_SUPPORT_WRITEERRORS_H

#include "llvm/Support/raw_ostream.h"

#include <string>

namespace shardc {

/// Writes out what `os` holds, the output `path` ("-": standard output). Says
/// what went wrong with it since it was opened, or nothing; without this call
/// LLVM ends the process then.
inline std::string finishOutput(llvm::raw_fd_ostream &os,
                                const std::string &path) {
  os.flush();
  if (!os.has_error())
    return "";
  std::string message = os.error().message();
  os.clear_error();
  return "cannot write " +
         (path == "-" ? "standard output" : "'" + path + "'") + ": " + message;
}

} // namespace shardc

#endif // SHARDC_SUPPORT_WRITEERRORS_H
