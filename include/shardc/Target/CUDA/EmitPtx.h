//===- EmitPtx.h - Kernel functions to PTX ----------------------*- C++ -*-===//
//
// PTX is NVIDIA's assembly for a virtual machine, which its driver compiles for
// the GPU that it finds. Equal modules give equal text. Thread-safe on distinct
// contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_CUDA_EMITPTX_H
#define SHARDC_TARGET_CUDA_EMITPTX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace shardc {

/// The PTX of a whole module after `codegen` for a GPU, whose kernels are in
/// the nested gpu.module @kernels. It defines all functions that it calls; if a
/// kernel needs another one, an error names it.
llvm::Expected<std::string> emitPtx(mlir::ModuleOp module);

/// `--shardc-emit-ptx`: writes the PTX of the module to a file and leaves the
/// module as it is.
std::unique_ptr<mlir::Pass> createEmitPtxPass();

/// Registers the pass for textual pipelines.
void registerShardcCudaPasses();

} // namespace shardc

#endif // SHARDC_TARGET_CUDA_EMITPTX_H
