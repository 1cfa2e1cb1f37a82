//===- Lowering.h - From ops of StableHLO to the tensor core ----*- C++ -*-===//
//
// Walks a StableHLO function, with calls inlined, and builds the ops of a
// function of shardc. Ops are found by name in tables, one per kind of op.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_IMPORT_LOWERING_H
#define SHARDC_LIB_IMPORT_LOWERING_H

#include "ConstantIntegers.h"
#include "Meshes.h"

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace shardc {

class MicrobatchLoop;

class Lowering {
public:
  /// Of a whole train step, in which nothing is differentiated any more, or of
  /// a loss. `meshes` are those of `source`, and outlive the lowering.
  Lowering(mlir::ModuleOp source, const Meshes &meshes, mlir::OpBuilder builder,
           bool isStep)
      : source(source), meshes(meshes), builder(builder), isStep(isStep) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::ModuleOp getSource() { return source; }
  const Meshes &getMeshes() { return meshes; }

  /// The loop over microbatches whose body is lowered, or null.
  MicrobatchLoop *getLoop() { return loop; }
  void setLoop(MicrobatchLoop *body) { loop = body; }
  /// Whether a loop may become one over microbatches: they do not nest, and
  /// have no gradients.
  bool mayAccumulate() { return isStep && !loop; }

  /// The value that stands for the operand `index` of `op`.
  mlir::Value get(mlir::Operation *op, unsigned index) {
    return values.lookup(op->getOperand(index));
  }
  mlir::Value get(mlir::Value value) { return values.lookup(value); }
  void set(mlir::Value from, mlir::Value to) { values.map(from, to); }
  /// `to` for the only result of `op`; a constant for an integer that is one.
  mlir::LogicalResult set(mlir::Operation *op, mlir::Value to) {
    values.map(op->getResult(0), foldInteger(builder, to));
    return mlir::success();
  }
  /// Arithmetic on tensors of the type of the only result of `op`.
  Arithmetic at(mlir::Operation *op) {
    return Arithmetic(
        builder, op->getLoc(),
        mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType()));
  }

  /// Lowers the ops of `block`, whose arguments have values; the operands of
  /// its terminator are its `results`.
  mlir::LogicalResult run(mlir::Block &block,
                          llvm::SmallVectorImpl<mlir::Value> &results);

  /// The same for the function `callee` in place of the call `op`.
  mlir::LogicalResult runCall(mlir::Operation *op,
                              mlir::FlatSymbolRefAttr callee);

  /// The same for `region` of `op` with `arguments`, which gives values of
  /// `types`.
  mlir::LogicalResult runRegion(mlir::Operation *op, mlir::Region &region,
                                mlir::ValueRange arguments,
                                mlir::TypeRange types,
                                llvm::SmallVectorImpl<mlir::Value> &results);

  /// `value` as a tensor of `type` with as many elements.
  mlir::Value reshape(mlir::Location loc, mlir::Value value,
                      mlir::RankedTensorType type);
  /// `value` repeated as by broadcast_in_dim.
  mlir::Value broadcast(mlir::Location loc, mlir::Value value,
                        mlir::RankedTensorType type,
                        llvm::ArrayRef<int64_t> dims);
  /// 0, 1, 2, ... along dimension `dim` of a tensor of `type`.
  mlir::Value count(mlir::Location loc, mlir::RankedTensorType type,
                    int64_t dim) {
    return builder.create<IotaOp>(loc, type, dim, ShardingAttr(),
                                  mlir::DenseI64ArrayAttr());
  }
  /// Elements `from` to `from + size` of dimension `dim` of `x`. Of a
  /// concatenation or a constant no more is read than is taken.
  mlir::Value slice(mlir::Location loc, mlir::Value x, int64_t dim,
                    int64_t from, int64_t size);
  /// `parts` one behind the other along `dim`.
  mlir::Value concatenate(mlir::Location loc, mlir::ValueRange parts,
                          int64_t dim);

private:
  mlir::ModuleOp source;
  const Meshes &meshes;
  mlir::OpBuilder builder;
  bool isStep;
  MicrobatchLoop *loop = nullptr;
  mlir::IRMapping values;
  int depth = 0;
  /// The place of the call whose body is lowered.
  std::optional<mlir::Location> caller;
  int64_t ops = 0;
};

/// Lowers one op with one result, or emits an error at it.
using LowerOp = mlir::LogicalResult (*)(Lowering &, mlir::Operation *);
struct OpLowering {
  llvm::StringLiteral name;
  LowerOp lower;
  /// The number of its operands and regions: nothing has verified the op. With
  /// fewer than 0 operands any number of operands and results is right, with
  /// fewer than 0 regions any number of regions.
  int operands;
  int regions = 0;
};

// The tables.
llvm::ArrayRef<OpLowering> getElementwiseLowerings();
llvm::ArrayRef<OpLowering> getBitLowerings();
llvm::ArrayRef<OpLowering> getShapeLowerings();
llvm::ArrayRef<OpLowering> getReduceLowerings();
llvm::ArrayRef<OpLowering> getSliceLowerings();
llvm::ArrayRef<OpLowering> getIndexLowerings();
llvm::ArrayRef<OpLowering> getScatterLowerings();
llvm::ArrayRef<OpLowering> getSortLowerings();
llvm::ArrayRef<OpLowering> getControlLowerings();
llvm::ArrayRef<OpLowering> getCallLowerings();

/// Success if tensors of shardc have the element type of `type`; else an error
/// at `loc` that `what` has or gives them.
mlir::LogicalResult checkElements(mlir::Location loc, const llvm::Twine &what,
                                  mlir::Type type);

/// The direction of a comparison, or an error at it.
mlir::FailureOr<CompareKind> getDirection(mlir::Operation *op);

/// `x` with its highest bit inverted: as signed numbers these are in the order
/// of the unsigned ones.
mlir::Value toSigned(Lowering &lowering, mlir::Location loc, mlir::Value x);

/// The numbers of attribute `name`, such as dimensions; none without it.
llvm::ArrayRef<int64_t> getDims(mlir::Operation *op, llvm::StringRef name);

/// What goes before those for ops that are isUnsigned.
llvm::ArrayRef<OpLowering> getUnsignedLowerings();

/// Of the names in `loc`, which are paths of JAX's scopes, the first that
/// contains `prefix`: what follows it, up to the next slash.
std::optional<llvm::StringRef> findScope(mlir::Location loc,
                                         llvm::StringRef prefix);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_LOWERING_H
