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

/// Puts --debug-only=PASS,... into `category`: LLVM's own or, in builds without
/// NDEBUG, this one. Other builds have no LLVM_DEBUG lines and no flag. Call it
/// at most once, before the command line is parsed.
void registerDebugOnlyFlag(llvm::cl::OptionCategory &category);

} // namespace shardc

#endif // SHARDC_DRIVER_DEBUGONLY_H
