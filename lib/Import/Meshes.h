//===- Meshes.h - Meshes and shardings of sdy -------------------*- C++ -*-===//
//
// A program of JAX may have several meshes of the same devices, which differ
// in how these are arranged:
//
//   @mesh = ["data"=2, "model"=4]      @mesh_0 = ["all"=8]
//
// The model has the one with the most axes. An axis of another one is the
// axes of the model's mesh that it is made of: "all" is "data", "model".
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_IMPORT_MESHES_H
#define SHARDC_LIB_IMPORT_MESHES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

/// The name of the only mesh of a module.
inline constexpr llvm::StringLiteral importedMeshName = "mesh";

class Meshes {
public:
  /// Reads the meshes of `source`, or emits an error at one.
  static mlir::FailureOr<Meshes> read(mlir::ModuleOp source);

  /// Builds the mesh of the model; without any, that of one device.
  MeshOp build(mlir::Location loc, mlir::OpBuilder &builder) const;

  /// The sharding of sdy `attribute` as shardc's, or an error from `emitError`.
  mlir::FailureOr<ShardingAttr> importSharding(
      mlir::Attribute attribute,
      llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;

private:
  using Axes = llvm::SmallVector<std::pair<llvm::StringRef, int64_t>>;

  /// For each of `axes` the axes of the model's mesh that it is made of; or
  /// none.
  std::optional<llvm::StringMap<llvm::SmallVector<llvm::StringRef>>>
  divide(const Axes &axes) const;

  /// `dims`, [{"all"}, {}], with the axes of the model's mesh.
  std::string translate(
      llvm::StringRef dims,
      const llvm::StringMap<llvm::SmallVector<llvm::StringRef>> &parts) const;

  llvm::StringMap<Axes> meshes;
  Axes main;
};

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_MESHES_H
