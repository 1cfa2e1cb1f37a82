//===- Alignment.cpp - Positions of the operands' elements ----------------===//

#include "shardc/Interpreter/Alignment.h"

using namespace mlir;
using namespace shardc;

/// Global indices along a factor, by position on one device; -1: unknown, as in
/// padding.
using Indices = std::vector<int64_t>;

/// Records on one device the positions of `tensor` in `factors`; returns the
/// first element that contradicts them.
static std::optional<Misplacement>
align(const PlacedTensor &tensor, const ShardingRule::TensorFactors &dims,
      unsigned operand, int64_t device, std::vector<Indices> &factors) {
  const Tensor &indices = tensor.placement->indices[device];
  for (auto [dim, numbers] : llvm::enumerate(dims))
    if (numbers.size() == 1)
      factors[numbers[0]].resize(indices.shape[dim], -1);
  std::optional<Misplacement> misplacement;
  auto visit = [&](ArrayRef<int64_t> place, int64_t linear, int64_t) {
    auto index = static_cast<int64_t>(indices.data[linear]);
    if (index < 0 || misplacement)
      return;
    SmallVector<int64_t, 3> global = getPlace(index, tensor.globalShape);
    for (auto [dim, numbers] : llvm::enumerate(dims)) {
      if (numbers.size() != 1)
        continue;
      int64_t &expected = factors[numbers[0]][place[dim]];
      if (expected >= 0 && expected != global[dim])
        misplacement = {operand,     static_cast<int64_t>(dim),
                        device,      place[dim],
                        global[dim], expected};
      expected = global[dim];
    }
  };
  forEachPlace(indices.shape, getStrides(indices.shape), visit);
  return misplacement;
}

std::optional<Misplacement>
shardc::findMisplacement(const ShardingRule &rule,
                         ArrayRef<PlacedTensor> operands,
                         const PlacedTensor &result) {
  int64_t numDevices = result.placement->indices.size();
  for (int64_t device = 0; device < numDevices; ++device) {
    std::vector<Indices> factors(rule.factors.size());
    // The result comes first and so always fits.
    align(result, rule.results[0], 0, device, factors);
    for (auto [index, operand] : llvm::enumerate(operands))
      if (operand.placement)
        if (auto misplacement =
                align(operand, rule.operands[index], index, device, factors))
          return misplacement;
  }
  return std::nullopt;
}
