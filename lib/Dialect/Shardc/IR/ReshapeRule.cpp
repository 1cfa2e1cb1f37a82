//===- ReshapeRule.cpp - The sharding rule of a reshape -------------------===//
//
// Walks both shapes from the major side. Where one dimension is a multiple of
// the other, the quotient is carried on; where neither is, the rest of the
// group cannot be sharded.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Splits the dimensions of a reshape into common factors.
class ReshapeFactors {
public:
  ReshapeFactors(ArrayRef<int64_t> from, ArrayRef<int64_t> to)
      : from(from), to(to), fromDims(from.size()), toDims(to.size()) {}

  ShardingRule build() {
    if (llvm::is_contained(from, 0) || llvm::is_contained(to, 0)) {
      addWhole(from, fromDims);
      addWhole(to, toDims);
    } else {
      split();
    }
    restrict();
    rule.operands = {fromDims};
    rule.results = {toDims};
    rule.partial = PartialRule::Additive;
    return std::move(rule);
  }

private:
  int add(int64_t size, FactorKind kind = FactorKind::Parallel) {
    rule.factors.push_back({size, kind});
    return static_cast<int>(rule.factors.size()) - 1;
  }

  void addWhole(ArrayRef<int64_t> shape, ShardingRule::TensorFactors &dims) {
    for (auto [size, dim] : llvm::zip_equal(shape, dims))
      dim = {add(size, FactorKind::Whole)};
  }

  void split() {
    size_t i = 0, j = 0;
    // The part of the current dimension, on each side, that has no factor yet.
    int64_t left = 1, right = 1;
    while (i < from.size() || j < to.size()) {
      bool fresh = left == 1 && right == 1;
      if (fresh && i < from.size() && j < to.size() && from[i] == to[j]) {
        fromDims[i] = toDims[j] = {add(from[i])};
        ++i, ++j;
        continue;
      }
      if (fresh && i < from.size() && from[i] == 1) {
        fromDims[i++] = {add(1, FactorKind::Whole)};
        continue;
      }
      if (fresh && j < to.size() && to[j] == 1) {
        toDims[j++] = {add(1)};
        continue;
      }
      splitGroup(i, j, left, right);
    }
  }

  /// One group: dimensions whose products agree on both sides.
  void splitGroup(size_t &i, size_t &j, int64_t &left, int64_t &right) {
    left = from[i];
    right = to[j];
    while (true) {
      int64_t common = std::min(left, right);
      if (left % common != 0 || right % common != 0)
        return skipGroup(i, j, left, right);
      int factor = add(common);
      fromDims[i].push_back(factor);
      toDims[j].push_back(factor);
      left /= common;
      right /= common;
      if (left == 1)
        ++i;
      if (right == 1)
        ++j;
      if (left == 1 && right == 1)
        return;
      if (left == 1)
        left = from[i];
      if (right == 1)
        right = to[j];
    }
  }

  /// Gives the rest of a group without common factors one unshardable factor
  /// per dimension.
  void skipGroup(size_t &i, size_t &j, int64_t &left, int64_t &right) {
    fromDims[i].push_back(add(left, FactorKind::Whole));
    toDims[j].push_back(add(right, FactorKind::Whole));
    while (left != right) {
      if (left < right) {
        left *= from[++i];
        fromDims[i] = {add(from[i], FactorKind::Whole)};
      } else {
        right *= to[++j];
        toDims[j] = {add(to[j], FactorKind::Whole)};
      }
    }
    ++i, ++j;
    left = right = 1;
  }

  /// A dimension made of several factors is sharded evenly along its major one,
  /// and along the next one if shards of the major one have one index: any
  /// other shard is not a block of the dimension.
  void restrict() {
    for (const ShardingRule::TensorFactors *dims : {&fromDims, &toDims})
      for (const ShardingRule::DimFactors &dim : *dims) {
        if (dim.size() < 2)
          continue;
        int major = -1;
        bool isWhole = false;
        for (int number : dim) {
          Factor &factor = rule.factors[number];
          factor.mustDivide = true;
          if (isWhole)
            factor.kind = FactorKind::Whole;
          isWhole |= factor.kind == FactorKind::Whole;
          if (factor.size > 1) {
            if (major >= 0)
              factor.major = major;
            major = number;
          }
        }
      }
  }

  ArrayRef<int64_t> from, to;
  ShardingRule::TensorFactors fromDims, toDims;
  ShardingRule rule;
};

} // namespace

ShardingRule ReshapeOp::getShardingRule() {
  return ReshapeFactors(getOperand().getType().getShape(),
                        getResult().getType().getShape())
      .build();
}
