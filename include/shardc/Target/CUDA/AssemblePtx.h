//===- AssemblePtx.h - PTX to machine code ----------------------*- C++ -*-===//
//
// By NVIDIA's assembler, a program of the CUDA toolkit and of the Python
// package nvidia-cuda-nvcc. Thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_CUDA_ASSEMBLEPTX_H
#define SHARDC_TARGET_CUDA_ASSEMBLEPTX_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace shardc {

/// The path of the assembler: the value of SHARDC_PTXAS, where empty means
/// none, or else `ptxas` on PATH or of a toolkit in /usr/local/cuda; empty if
/// there is none.
std::string findPtxas();

/// The machine code, a cubin, of `ptx` for the GPU `chip`, such as "sm_90".
/// Equal texts give equal code with the same `ptxas`. An error has the
/// assembler's message.
llvm::Expected<std::string>
assemblePtx(llvm::StringRef ptx, llvm::StringRef chip, llvm::StringRef ptxas);

} // namespace shardc

#endif // SHARDC_TARGET_CUDA_ASSEMBLEPTX_H
