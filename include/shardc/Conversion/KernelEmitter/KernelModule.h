//===- KernelModule.h - The module of the kernels' functions ----*- C++ -*-===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_KERNELMODULE_H
#define SHARDC_CONVERSION_KERNELEMITTER_KERNELMODULE_H

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// Name of the nested module that holds the functions of the kernels.
constexpr llvm::StringLiteral kernelModuleName = "kernels";

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_KERNELMODULE_H
