//===- CaptureStream.h - The text that a library prints ---------*- C++ -*-===//
//
// LLVM prints help to standard output and errors of its flags to standard
// error, the only places it knows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_CAPTURESTREAM_H
#define SHARDC_SUPPORT_CAPTURESTREAM_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <string>

namespace shardc {

/// The text that `run` writes to the open file `stream`, such as
/// `STDOUT_FILENO`, which receives nothing of it. `run` flushes its own
/// buffers. Returns "" and lets the text pass if the system has no file for it.
/// Not thread-safe: the text of other threads is captured, too.
std::string captureStream(int stream, llvm::function_ref<void()> run);

} // namespace shardc

#endif // SHARDC_SUPPORT_CAPTURESTREAM_H
