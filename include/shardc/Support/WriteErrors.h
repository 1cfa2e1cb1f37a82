//===- WriteErrors.h - Errors of outputs ------------------------*- C++ -*-===//

#ifndef SHARDC_SUPPORT_WRITEERRORS_H
#define SHARDC_SUPPORT_WRITEERRORS_H

#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <string>

namespace shardc {

/// Flushes `os`, the output `path` ("-": standard output). Returns its first
/// error since it was opened, or "". Without this call LLVM ends the process on
/// an error.
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

/// Makes a file that grows beyond the limit of its size an error of the write
/// and not a signal. Called after `InitLLVM`, which has a handler for it.
inline void ignoreSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

} // namespace shardc

#endif // SHARDC_SUPPORT_WRITEERRORS_H
