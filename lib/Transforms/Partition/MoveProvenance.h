//===- MoveProvenance.h - Provenance of reshards ----------------*- C++ -*-===//
//
// Describes as data (#shardc.move) why a reshard exists: the producer and the
// consumer of the value, and the annotations that gave them their axes.
// ReshardCauses.h says it in words. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_MOVEPROVENANCE_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_MOVEPROVENANCE_H

#include "Provenance.h"
#include "ReshardCauses.h"

namespace shardc {

/// The provenance of the reshards of one function. Construct it before the
/// function changes. Borrows `mesh` and `names`.
class MoveProvenance {
public:
  MoveProvenance(mlir::func::FuncOp function, const MeshAxes &mesh,
                 mlir::FlatSymbolRefAttr meshName, const ReshardCauses &names);

  /// Returns `loc` with the metadata of a move of `value`, produced in layout
  /// `from`, to `use`, which needs layout `to`. Numbers the moves.
  mlir::Location record(mlir::Location loc, mlir::Value value,
                        const Layout &from, const Layout &to,
                        mlir::OpOperand &use);

private:
  MoveEndAttr getProducer(mlir::Value value, const Layout &from, AxisSet moved);
  MoveEndAttr getConsumer(mlir::OpOperand &use, AxisSet moved);
  MoveEndAttr getEnd(mlir::StringRef op, PartAttr part, mlir::Location at,
                     mlir::ArrayRef<mlir::Attribute> arguments,
                     mlir::ArrayRef<mlir::Attribute> origins);
  /// The names of the arguments of the function that `op` reads.
  llvm::SmallVector<mlir::Attribute> getArguments(mlir::Operation *op);
  /// A name of the value for users: "w0", "result of add at mlp.mlir:12".
  mlir::StringAttr getName(mlir::Value value);

  mlir::func::FuncOp function;
  const MeshAxes &mesh;
  mlir::FlatSymbolRefAttr meshName;
  const ReshardCauses &names;
  Provenance origins;
  mlir::Builder builder;
  int64_t count = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_MOVEPROVENANCE_H
