//===- ReadModel.h - Reads source modules -----------------------*- C++ -*-===//

#ifndef SHARDC_DRIVER_READMODEL_H
#define SHARDC_DRIVER_READMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <memory>
#include <string>

namespace shardc {

/// The bytes of the file `path` ("-": standard input), which ends.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readModelFile(const std::string &path);

/// Parses the only buffer of `sources`, a module of shardc or a program of
/// StableHLO, in `context`, which knows the dialects. Null, with a diagnostic,
/// if there is an error.
mlir::OwningOpRef<mlir::ModuleOp> parseModel(llvm::SourceMgr &sources,
                                             mlir::MLIRContext &context);

} // namespace shardc

#endif // SHARDC_DRIVER_READMODEL_H
