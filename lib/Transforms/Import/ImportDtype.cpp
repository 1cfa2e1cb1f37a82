//===- ImportDtype.cpp - Compute in a narrower type -----------------------===//
//
// Mixed precision: inserts conversions into a loss function of f32, which a
// user could have written as well. Parameters, inputs and labels keep f32. So
// does the loss: ops that depend on labels, loss ops, and ops with scalar
// results. All other ops compute in bf16.
//
//===----------------------------------------------------------------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace shardc;

static bool isFloatTensor(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

/// Fails if a value of the function has another floating-point type than f32:
/// its author chose that type on purpose.
static LogicalResult verifyF32(func::FuncOp loss, StringRef dtype) {
  auto verify = [&](Value value) -> LogicalResult {
    if (!isFloatTensor(value) || getElementTypeOrSelf(value).isF32())
      return success();
    return mlir::emitError(value.getLoc())
           << "cannot compute in " << dtype
           << " as asked for: expected a model of f32 throughout, got "
           << value.getType() << "; a model with types of its own is compiled "
           << "without that option";
  };
  for (Value argument : loss.getArguments())
    if (failed(verify(argument)))
      return failure();
  for (Operation &op : loss.getBody().front())
    for (Value result : op.getResults())
      if (failed(verify(result)))
        return failure();
  return success();
}

namespace {

/// Rewrites one loss function to compute in bf16.
class DtypeOverride {
public:
  explicit DtypeOverride(func::FuncOp loss) : loss(loss) {}

  LogicalResult run() {
    for (BlockArgument argument : loss.getArguments())
      if (isa<LabelAttr>(getRole(loss, argument.getArgNumber())))
        ofLabels.insert(argument);
    SmallVector<Operation *> ops;
    for (Operation &op : loss.getBody().front())
      ops.push_back(&op);
    for (Operation *op : ops)
      rewrite(op);
    return mlir::verify(loss);
  }

private:
  /// Whether the op stays in f32. Conversions to integers do, because their
  /// operands must not be rounded.
  bool isWide(Operation *op) {
    bool readsLabels = llvm::any_of(op->getOperands(), [&](Value operand) {
      return ofLabels.contains(operand);
    });
    if (readsLabels)
      ofLabels.insert(op->result_begin(), op->result_end());
    return readsLabels ||
           isa<func::ReturnOp, MseOp, SoftmaxCrossEntropyOp>(op) ||
           (isa<ConvertOp>(op) && !isFloatTensor(op->getResult(0))) ||
           llvm::any_of(op->getResultTypes(), [](Type type) {
             return cast<RankedTensorType>(type).getRank() == 0;
           });
  }

  /// Converts the operands of `op` to the type in which it computes.
  void rewrite(Operation *op) {
    OpBuilder builder(op);
    bool isNarrow =
        !isWide(op) && llvm::any_of(op->getOperands(), isFloatTensor);
    Type element =
        isNarrow ? Type(builder.getBF16Type()) : Type(builder.getF32Type());
    for (OpOperand &operand : op->getOpOperands())
      if (isFloatTensor(operand.get()))
        operand.set(getAs(builder, op->getLoc(), operand.get(), element));
    for (Value result : op->getResults())
      if (isNarrow && isFloatTensor(result))
        result.setType(cast<RankedTensorType>(result.getType()).clone(element));
  }

  /// Returns `value` in the type `element`; converts it before its first use in
  /// that type.
  Value getAs(OpBuilder &builder, Location loc, Value value, Type element) {
    if (getElementTypeOrSelf(value) == element)
      return value;
    Value &converted = conversions[value];
    if (!converted)
      converted = convertTo(builder, loc, value, element);
    return converted;
  }

  func::FuncOp loss;
  /// Values that depend on labels.
  llvm::DenseSet<Value> ofLabels;
  /// From a value to its conversion to the other type.
  llvm::DenseMap<Value, Value> conversions;
};

} // namespace

LogicalResult shardc::overrideDtype(func::FuncOp loss, StringRef dtype) {
  if (dtype.empty())
    return success();
  if (dtype != "f32" && dtype != "bf16")
    return loss.emitError("unknown element type '")
           << dtype << "', expected f32 or bf16";
  if (failed(verifyF32(loss, dtype)))
    return failure();
  return dtype == "bf16" ? DtypeOverride(loss).run() : success();
}
