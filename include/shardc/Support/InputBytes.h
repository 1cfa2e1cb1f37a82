//===- InputBytes.h - The kind of a file by its first bytes -----*- C++ -*-===//
//
// Tells plans from IR by content, not by name. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_INPUTBYTES_H
#define SHARDC_SUPPORT_INPUTBYTES_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace shardc {

/// Whether `bytes` begin as those of a plan do (docs/PlanFormat.md). The first
/// 8 are enough.
bool beginsAsPlan(llvm::StringRef bytes);

/// Why `bytes` cannot be IR: they are a plan, or neither text (UTF-8 without
/// control characters) nor MLIR's bytecode. Empty if they may be.
std::string checkIsSource(llvm::StringRef bytes);

} // namespace shardc

#endif // SHARDC_SUPPORT_INPUTBYTES_H
