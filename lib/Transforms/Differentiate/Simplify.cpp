//===- Simplify.cpp - Cleaning up differentiated programs -----------------===//

#include "Simplify.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

static bool isFloat(Value value) {
  return isa<FloatType>(getTensorType(value).getElementType());
}

static bool isPowerOfTwo(double value) {
  int exponent = 0;
  return std::isfinite(value) && std::abs(std::frexp(value, &exponent)) == 0.5;
}

namespace {

/// Peephole simplification: one op at a time, operands before users.
class AlgebraicSimplifier {
public:
  explicit AlgebraicSimplifier(func::FuncOp function) : function(function) {}

  void run() {
    for (Block &block : function.getBody())
      for (Operation &op : llvm::make_early_inc_range(block))
        if (Value value = simplify(&op)) {
          op.replaceAllUsesWith(ValueRange(value));
          op.erase();
        }
  }

private:
  /// Returns a simpler value for the result of `op`, or null. May replace the
  /// operands of `op`.
  Value simplify(Operation *op) {
    if (op->getNumResults() != 1)
      return {};
    if (op->hasTrait<OpTrait::IsCommutative>() &&
        matchSplat(op->getOperand(0)) && !matchSplat(op->getOperand(1)))
      op->setOperands({op->getOperand(1), op->getOperand(0)});
    if (Value folded = foldSplats(op))
      return folded;
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case<MulOp>([&](MulOp mul) { return simplifyMul(mul); })
        .Case<AddOp>([&](AddOp add) { return simplifyAdd(add); })
        .Case<DivOp>([&](DivOp div) {
          return matchSplat(div.getRhs()) == 1.0 ? div.getLhs() : Value();
        })
        .Case<SubOp>([&](SubOp sub) {
          return matchSplat(sub.getRhs()) == 0.0 ? sub.getLhs() : Value();
        })
        .Case<NegOp>([&](NegOp neg) {
          auto inner = neg.getOperand().getDefiningOp<NegOp>();
          return inner ? inner.getOperand() : Value();
        })
        .Case<StopGradientOp>(
            [](StopGradientOp stop) { return stop.getOperand(); })
        .Case<ReshapeOp, ConvertOp, BroadcastOp>([](auto identity) {
          Value operand = identity.getOperand();
          return operand.getType() == identity.getResult().getType() ? operand
                                                                     : Value();
        })
        .Case<TransposeOp>([](TransposeOp transpose) {
          return llvm::is_sorted(transpose.getPermutation())
                     ? transpose.getOperand()
                     : Value();
        })
        .Default([](Operation *) { return Value(); });
  }

  /// Folds an op on splat constants. It computes in double and rounds the
  /// result to the element type, which for the types up to f32 gives the
  /// correctly rounded result (Figueroa 1995).
  Value foldSplats(Operation *op) {
    Value result = op->getResult(0);
    if (!isFloat(result) || op->getNumOperands() == 0)
      return {};
    SmallVector<double, 2> splats;
    for (Value operand : op->getOperands()) {
      std::optional<double> splat = matchSplat(operand);
      if (!splat || !isFloat(operand))
        return {};
      splats.push_back(*splat);
    }
    auto folded = llvm::TypeSwitch<Operation *, std::optional<double>>(op)
                      .Case<AddOp>([&](auto) { return splats[0] + splats[1]; })
                      .Case<SubOp>([&](auto) { return splats[0] - splats[1]; })
                      .Case<MulOp>([&](auto) { return splats[0] * splats[1]; })
                      .Case<DivOp>([&](auto) { return splats[0] / splats[1]; })
                      .Case<NegOp>([&](auto) { return -splats[0]; })
                      .Case<BroadcastOp, TransposeOp, ReshapeOp, ConvertOp>(
                          [&](auto) { return splats[0]; })
                      .Default([](Operation *) { return std::nullopt; });
    if (!folded || !std::isfinite(*folded))
      return {};
    return rebuild(op, *folded);
  }

  Value simplifyMul(MulOp mul) {
    std::optional<double> factor = matchSplat(mul.getRhs());
    if (!factor)
      return {};
    if (*factor == 1)
      return mul.getLhs();
    auto inner = mul.getLhs().getDefiningOp<MulOp>();
    std::optional<double> innerFactor =
        inner ? matchSplat(inner.getRhs()) : std::nullopt;
    if (!innerFactor || !isFloat(mul.getResult()) ||
        !(isPowerOfTwo(*factor) || isPowerOfTwo(*innerFactor)))
      return {};
    Value product = rebuild(mul, *factor * *innerFactor);
    mul.setOperand(0, inner.getLhs());
    mul.setOperand(1, product);
    return {};
  }

  /// Replaces x + x by 2x.
  Value simplifyAdd(AddOp add) {
    if (add.getLhs() != add.getRhs() || !isFloat(add.getResult()))
      return {};
    Value two = rebuild(add, 2);
    OpBuilder builder(add);
    auto mul = builder.create<MulOp>(add.getLoc(), add.getLhs(), two);
    mul->setDiscardableAttrs(add->getDiscardableAttrDictionary());
    Value simpler = simplifyMul(mul);
    return simpler ? simpler : mul.getResult();
  }

  /// Builds a splat constant of the type and with the attributes of `op`.
  Value rebuild(Operation *op, double value) {
    OpBuilder builder(op);
    Value constant = constantSplat(builder, op->getLoc(),
                                   getTensorType(op->getResult(0)), value);
    constant.getDefiningOp()->setDiscardableAttrs(
        op->getDiscardableAttrDictionary());
    return constant;
  }

  func::FuncOp function;
};

} // namespace

static void eliminateDeadOps(func::FuncOp function) {
  for (Block &block : function.getBody())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
}

static void mergeEqualOps(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  DominanceInfo dominance(function);
  eliminateCommonSubExpressions(rewriter, dominance, function);
}

/// Gives each use of a constant-like tensor a copy of its own.
static void splitConstants(func::FuncOp function) {
  auto isConstantLike = [](Operation &op) {
    if (op.getNumResults() != 1)
      return false;
    if (getTensorType(op.getResult(0)).getRank() == 0)
      return false;
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return getTensorType(broadcast.getOperand()).getRank() == 0;
    return isa<ConstantOp, IotaOp>(op);
  };
  SmallVector<Operation *> constants;
  for (Operation &op : function.getOps())
    if (isConstantLike(op))
      constants.push_back(&op);
  for (Operation *op : constants) {
    SmallVector<OpOperand *> uses = llvm::to_vector(
        llvm::map_range(op->getUses(), [](OpOperand &use) { return &use; }));
    // The order of a use list does not follow from the program.
    llvm::sort(uses, [](OpOperand *lhs, OpOperand *rhs) {
      if (lhs->getOwner() != rhs->getOwner())
        return lhs->getOwner()->isBeforeInBlock(rhs->getOwner());
      return lhs->getOperandNumber() < rhs->getOperandNumber();
    });
    for (OpOperand *use : uses) {
      OpBuilder builder(use->getOwner());
      Operation *copy = builder.clone(*op);
      for (StringRef name : {partAttrName, stageAttrName})
        if (Attribute value = use->getOwner()->getAttr(name))
          copy->setAttr(name, value);
      use->set(copy->getResult(0));
    }
    op->erase();
  }
}

void shardc::simplify(func::FuncOp function) {
  AlgebraicSimplifier(function).run();
  mergeEqualOps(function);
  // Merging makes more simplifications possible: x + y with y merged into x.
  AlgebraicSimplifier(function).run();
  mergeEqualOps(function);
  eliminateDeadOps(function);
  splitConstants(function);
}
