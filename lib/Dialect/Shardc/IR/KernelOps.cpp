//===- KernelOps.cpp - Verifiers of kernel and gemm -----------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;
using namespace shardc;

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getOperandTypes())
    return emitOpError("body's arguments must have the types of the operands, "
                       "got (")
           << body.getArgumentTypes() << ") for (" << getOperandTypes() << ")";
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return emitOpError("body must end in shardc.yield");
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("must yield the types of its results, got (")
           << yield.getOperandTypes() << ") for (" << getResultTypes() << ")";
  return success();
}

/// Constraint C6.
static LogicalResult verifyColumnSums(GemmOp gemm) {
  bool ofLhs = gemm.getSumsLhs(), ofRhs = gemm.getSumsRhs();
  if ((ofLhs && ofRhs) || bool(gemm.getColumnSums()) != (ofLhs || ofRhs))
    return gemm.emitOpError("needs a second result and either sums_lhs or "
                            "sums_rhs, or none of them");
  if (!gemm.getColumnSums())
    return success();
  auto result = cast<RankedTensorType>(gemm.getResult().getType());
  if (result.getRank() != 2 || gemm.getBias() || gemm.getRelu())
    return gemm.emitOpError("with sums of columns must be of rank 2, without "
                            "bias and relu");
  if ((ofLhs && !gemm.getTransposeLhs()) || (ofRhs && gemm.getTransposeRhs()))
    return gemm.emitOpError("can sum the columns only of an operand whose rows "
                            "are contracted");
  auto expected = RankedTensorType::get(result.getDimSize(ofLhs ? 0 : 1),
                                        result.getElementType());
  if (Type type = gemm.getColumnSums().getType(); type != expected)
    return gemm.emitOpError("sums of columns must be ")
           << expected << ", got " << type;
  return success();
}

LogicalResult GemmOp::verify() {
  auto lhs = cast<RankedTensorType>(getLhs().getType());
  auto rhs = cast<RankedTensorType>(getRhs().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  int64_t rank = result.getRank();
  if ((rank != 2 && rank != 3) || lhs.getRank() != rank ||
      rhs.getRank() != rank)
    return emitOpError("operands and result must have the same rank, 2 or 3, "
                       "got ")
           << lhs << ", " << rhs << " and " << result;

  Type element = result.getElementType();
  bool isWidened = lhs.getElementType().isBF16() && element.isF32();
  if (lhs.getElementType() != rhs.getElementType() ||
      (lhs.getElementType() != element && !isWidened))
    return emitOpError("operands must have the element type of the result, or "
                       "bf16 for a result of f32, got ")
           << lhs << " and " << rhs << " for " << result;

  auto size = [&](RankedTensorType type, bool transposed, int64_t index) {
    return type.getDimSize(rank - 2 + (transposed ? 1 - index : index));
  };
  bool agree =
      size(lhs, getTransposeLhs(), 1) == size(rhs, getTransposeRhs(), 0) &&
      size(lhs, getTransposeLhs(), 0) == size(result, false, 0) &&
      size(rhs, getTransposeRhs(), 1) == size(result, false, 1);
  if (rank == 3)
    agree &= lhs.getDimSize(0) == rhs.getDimSize(0) &&
             lhs.getDimSize(0) == result.getDimSize(0);
  if (!agree)
    return emitOpError("contracted, batch and result dimensions must agree, "
                       "got ")
           << lhs << (getTransposeLhs() ? " (transposed)" : "") << " by " << rhs
           << (getTransposeRhs() ? " (transposed)" : "") << " to " << result;

  if (Value bias = getBias()) {
    auto type = cast<RankedTensorType>(bias.getType());
    if (auto expected =
            RankedTensorType::get(result.getShape().back(), element);
        type != expected)
      return emitOpError("bias must be ") << expected << ", got " << type;
  }
  if (getSum() && getSum().getType() != result)
    return emitOpError("sum must have the type of the result, ")
           << result << ", got " << getSum().getType();
  return verifyColumnSums(*this);
}
