//===- DotGradients.cpp - The gradients of a dot_general ------------------===//
//
// Each gradient is a dot_general again. The order of its operands decides
// whether a transpose has to follow.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The dot_general of a gradient and the other operand, and the dimension of
/// the wanted operand for each of its dimensions.
struct GradientDot {
  Value lhs, rhs;
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  SmallVector<int64_t> order;

  Value build(OpBuilder &builder, Location loc, RankedTensorType type) const {
    SmallVector<int64_t> shape, inverse(order.size());
    for (auto [index, dim] : llvm::enumerate(order)) {
      shape.push_back(type.getDimSize(dim));
      inverse[dim] = index;
    }
    Value dot = builder.create<DotGeneralOp>(
        loc, RankedTensorType::get(shape, type.getElementType()), lhs, rhs,
        lhsBatching, rhsBatching, lhsContracting, rhsContracting);
    if (llvm::is_sorted(order))
      return dot;
    return builder.create<TransposeOp>(loc, type, dot, inverse);
  }
};

} // namespace

/// Gradient of one operand ("own") of a dot_general, from the other one.
/// `ownFirst`: whether own free dimensions come before the other's in the
/// result. Of the two operand orders it takes the one that needs no transpose.
static Value buildDotGradient(
    OpBuilder &builder, Location loc, Value grad, Value own, Value other,
    ArrayRef<int64_t> ownBatching, ArrayRef<int64_t> otherBatching,
    ArrayRef<int64_t> ownContracting, ArrayRef<int64_t> otherContracting,
    ArrayRef<int64_t> ownFree, ArrayRef<int64_t> otherFree, bool ownFirst) {
  int64_t batch = ownBatching.size();
  auto batching = llvm::to_vector(llvm::seq<int64_t>(0, batch));
  int64_t start = batch + (ownFirst ? ownFree.size() : 0);
  auto contracted =
      llvm::to_vector(llvm::seq<int64_t>(start, start + otherFree.size()));

  // The other operand's contracting dimensions, ascending, as own dimensions.
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [theirs, mine] : llvm::zip_equal(otherContracting, ownContracting))
    pairs.push_back({theirs, mine});
  llvm::sort(pairs);
  SmallVector<int64_t> remaining =
      llvm::to_vector(llvm::make_second_range(pairs));

  GradientDot gradFirst{grad,
                        other,
                        batching,
                        llvm::to_vector(otherBatching),
                        contracted,
                        llvm::to_vector(otherFree),
                        llvm::to_vector(ownBatching)};
  llvm::append_range(gradFirst.order, ownFree);
  llvm::append_range(gradFirst.order, remaining);
  GradientDot otherFirst{other,
                         grad,
                         llvm::to_vector(otherBatching),
                         batching,
                         llvm::to_vector(otherFree),
                         contracted,
                         llvm::to_vector(ownBatching)};
  llvm::append_range(otherFirst.order, remaining);
  llvm::append_range(otherFirst.order, ownFree);

  RankedTensorType type = getTensorType(own);
  if (!llvm::is_sorted(gradFirst.order) && llvm::is_sorted(otherFirst.order))
    return otherFirst.build(builder, loc, type);
  return gradFirst.build(builder, loc, type);
}

void DotGeneralOp::buildVjp(OpBuilder &builder, ValueRange grads,
                            SmallVectorImpl<Value> &out) {
  Value grad = convertTo(builder, getLoc(), grads[0],
                         getTensorType(getLhs()).getElementType());
  out[0] = buildDotGradient(builder, getLoc(), grad, getLhs(), getRhs(),
                            getLhsBatching(), getRhsBatching(),
                            getLhsContracting(), getRhsContracting(),
                            getLhsFree(), getRhsFree(), /*ownFirst=*/true);
  out[1] = buildDotGradient(builder, getLoc(), grad, getRhs(), getLhs(),
                            getRhsBatching(), getLhsBatching(),
                            getRhsContracting(), getLhsContracting(),
                            getRhsFree(), getLhsFree(), /*ownFirst=*/false);
}
