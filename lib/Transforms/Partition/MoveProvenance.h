//===- MoveProvenance.h - Why a reshard exists, as data ---------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_MOVEPROVENANCE_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_MOVEPROVENANCE_H

#include "Provenance.h"
#include "ReshardCauses.h"

namespace shardc {

/// Describes the reshards of one function by #shardc.move. Construct it before
/// the function is changed. Lives as long as what it borrows.
class MoveProvenance {
public:
  MoveProvenance(mlir::func::FuncOp function, const MeshAxes &mesh,
                 mlir::FlatSymbolRefAttr meshName, const ReshardCauses &names);

  /// `loc` with the move of `value`, which was produced in layout `from` and is
  /// wanted by `use` in layout `to`.
  mlir::Location record(mlir::Location loc, mlir::Value value,
                        const Layout &from, const Layout &to,
                        mlir::OpOperand &use);

private:
  MoveEndAttr getProducer(mlir::Value value, const Layout &from, AxisSet moved);
  MoveEndAttr getConsumer(mlir::OpOperand &use, AxisSet moved);
  MoveEndAttr getEnd(mlir::StringRef op, PartAttr part, mlir::Location at,
                     mlir::ArrayRef<mlir::Attribute> arguments,
                     mlir::ArrayRef<mlir::Attribute> origins);
  /// The names of the function's arguments among the op's operands.
  llvm::SmallVector<mlir::Attribute> getArguments(mlir::Operation *op);
  /// What the user calls the value.
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
