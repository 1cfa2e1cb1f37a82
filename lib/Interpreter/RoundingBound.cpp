//===- RoundingBound.cpp - Error bounds of reordered sums -----------------===//

#include "shardc/Interpreter/RoundingBound.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

/// The quantum of zero, and of an empty set.
static constexpr int maxQuantum = 2000, noQuantum = -100000;

static double getGreatest(const Tensor &tensor) {
  double greatest = 0;
  for (double element : tensor.data)
    if (std::isfinite(element))
      greatest = std::max(greatest, std::fabs(element));
  return greatest;
}

/// The greatest q such that `value` is a multiple of 2^q.
static int getQuantum(double value) {
  if (value == 0 || !std::isfinite(value))
    return maxQuantum;
  int exponent;
  auto mantissa = static_cast<uint64_t>(
      std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
  return exponent - 53 + llvm::countr_zero(mantissa);
}

double RoundingBound::getTolerance(const Tensor &global) const {
  if (!isKnown)
    return 1e-9 * getGreatest(global);
  if (roundings == 0 || magnitude <= std::ldexp(1.0, 53 + quantum))
    return 0;
  return 2 * (roundings + 1) * std::ldexp(1.0, -53) * magnitude;
}

RoundingBound shardc::measure(const Tensor &tensor) {
  RoundingBound bound;
  bound.magnitude = getGreatest(tensor);
  bound.quantum = maxQuantum;
  for (double element : tensor.data)
    bound.quantum = std::min(bound.quantum, getQuantum(element));
  return bound;
}

/// Sums of `terms` products of `count` factors with these bounds.
static RoundingBound multiply(const RoundingBound &lhs,
                              const RoundingBound &rhs, double terms) {
  RoundingBound bound;
  bound.magnitude = terms * lhs.magnitude * rhs.magnitude;
  bound.quantum = std::max(lhs.quantum + rhs.quantum, noQuantum);
  bound.roundings = lhs.roundings + rhs.roundings + terms;
  return bound;
}

static double getTerms(RankedTensorType type, ArrayRef<int64_t> dims) {
  double terms = 1;
  for (int64_t dim : dims)
    terms *= static_cast<double>(type.getDimSize(dim));
  return terms;
}

static RoundingBound divide(RoundingBound bound, const Tensor &divisor) {
  double smallest = std::numeric_limits<double>::infinity();
  int quantum = maxQuantum;
  bool isPower = true;
  for (double element : divisor.data) {
    smallest = std::min(smallest, std::fabs(element));
    int exponent;
    isPower &= std::frexp(std::fabs(element), &exponent) == 0.5;
    quantum = std::min(quantum, 1 - exponent);
  }
  bound.magnitude /= smallest;
  bound.quantum =
      isPower ? std::max(bound.quantum + quantum, noQuantum) : noQuantum;
  bound.roundings += 1;
  return bound;
}

/// Of elements that stand side by side, in padding beside the fill.
static RoundingBound joinBounds(Operation *op,
                                ArrayRef<RoundingBound> operands) {
  RoundingBound bound = operands[0];
  if (auto pad = dyn_cast<PadOp>(op)) {
    double fill = pad.getFill().convertToDouble();
    if (std::isfinite(fill))
      bound.magnitude = std::max(bound.magnitude, std::fabs(fill));
    bound.quantum = std::min(bound.quantum, getQuantum(fill));
  }
  for (const RoundingBound &other : operands.drop_front()) {
    bound.magnitude = std::max(bound.magnitude, other.magnitude);
    bound.quantum = std::min(bound.quantum, other.quantum);
    bound.roundings = std::max(bound.roundings, other.roundings);
  }
  return bound;
}

RoundingBound shardc::deriveBound(Operation *op, const Tensor &result,
                                  ArrayRef<RoundingBound> operands,
                                  const Tensor *divisor) {
  bool isSame = llvm::all_of(operands, [](const RoundingBound &bound) {
    return bound.isKnown && bound.roundings == 0;
  });
  RoundingBound unknown;
  unknown.isKnown = false;
  if (!isSame && !llvm::all_of(operands, [](const RoundingBound &bound) {
        return bound.isKnown;
      }))
    return unknown;
  auto typeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType());
  };
  return llvm::TypeSwitch<Operation *, RoundingBound>(op)
      .Case<DotGeneralOp>([&](DotGeneralOp dot) {
        return multiply(
            operands[0], operands[1],
            getTerms(typeOf(dot.getLhs()), dot.getLhsContracting()));
      })
      .Case<ReduceOp>([&](ReduceOp reduce) {
        if (reduce.getKind() == ReductionKind::Max)
          return isSame ? measure(result) : unknown;
        double terms = getTerms(typeOf(reduce.getOperand()), reduce.getDims());
        RoundingBound bound = operands[0];
        bound.magnitude *= terms;
        bound.roundings += terms;
        return bound;
      })
      .Default([&](Operation *op) -> RoundingBound {
        // Both programs compute the same function of the same bits.
        if (isSame)
          return measure(result);
        if (isa<AddOp, SubOp>(op))
          return {operands[0].magnitude + operands[1].magnitude,
                  std::min(operands[0].quantum, operands[1].quantum),
                  std::max(operands[0].roundings, operands[1].roundings) + 1,
                  true};
        if (isa<MulOp>(op))
          return multiply(operands[0], operands[1], 1);
        if (isa<DivOp>(op) && operands[1].roundings == 0)
          return divide(operands[0], *divisor);
        if (isa<NegOp, StopGradientOp, ShardingConstraintOp, TransferOp,
                BroadcastOp, TransposeOp, ReshapeOp, ExtractSliceOp,
                PermuteRowsOp, ConvertOp, ScatterRowsOp>(op))
          return operands[0];
        if (isa<PadOp, ConcatenateOp>(op))
          return joinBounds(op, operands);
        return unknown;
      });
}
