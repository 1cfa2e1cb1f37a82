//===- DebugOnly.h - The flag --debug-only ----------------------*- C++ -*-===//
//
// LLVM has a flag --debug-only that selects the passes whose LLVM_DEBUG lines
// are printed, but registers it only if LLVM itself is built with assertions.
// Debian's is not. This flag is its substitute in debug builds of shardc.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DRIVER_DEBUGONLY_H
#define SHARDC_DRIVER_DEBUGONLY_H

#include "llvm/Support/CommandLine.h"

namespace shardc {

/// Registers --debug-only=PASS,... in `category`. Does nothing in builds with
/// NDEBUG, which have no LLVM_DEBUG lines, and if LLVM has the flag. Call it
/// at most once, before the command line is parsed.
void registerDebugOnlyFlag(llvm::cl::OptionCategory &category);

} // namespace shardc

#endif // SHARDC_DRIVER_DEBUGONLY_H
