//===- Placement.cpp - The elements that a device holds -------------------===//

#include "shardc/Interpreter/Placement.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

static constexpr double padding = -1;

Placement shardc::getPlacement(const Layout &layout, ArrayRef<int64_t> shape,
                               const Devices &devices) {
  Placement placement;
  placement.unreduced = layout.unreduced;
  placement.reduction = layout.reduction;
  placement.text = toString(layout, devices.getMesh());
  SmallVector<int64_t> local = layout.getLocalShape(shape, devices.getMesh());
  SmallVector<int64_t, 3> strides = getStrides(shape);
  for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
    std::vector<std::vector<int64_t>> elements;
    for (auto [size, axes] : llvm::zip_equal(local, layout.dims))
      elements.push_back(devices.getElements(device, axes, size));
    Tensor &indices = placement.indices.emplace_back(local, padding);
    forEachPlace(local, getStrides(local),
                 [&](ArrayRef<int64_t> place, int64_t linear, int64_t) {
                   int64_t index = 0;
                   for (size_t dim = 0; dim < place.size(); ++dim) {
                     int64_t element = elements[dim][place[dim]];
                     if (element >= shape[dim])
                       return;
                     index += element * strides[dim];
                   }
                   indices.data[linear] = static_cast<double>(index);
                 });
  }
  return placement;
}

Placement shardc::movePlacement(Operation *op, unsigned index,
                                const Placement &operand,
                                const Devices &devices) {
  Placement result;
  // Members that hold different elements cannot be reduced.
  result.indices = evaluateCollective(
      op, index, operand.indices, devices, padding, [](ArrayRef<double> terms) {
        return llvm::all_equal(terms) ? terms.front() : padding;
      });
  result.unreduced = operand.unreduced;
  result.reduction = operand.reduction;
  if (getReduction(op) == operand.reduction)
    for (int axis : getCollectiveAxes(op, devices))
      result.unreduced &= ~axisBit(axis);
  result.text = "as this op leaves " + operand.text;
  return result;
}

DeviceTensors shardc::scatter(const Tensor &global,
                              const Placement &placement) {
  DeviceTensors shards;
  for (const Tensor &indices : placement.indices) {
    Tensor &shard = shards.emplace_back(
        indices.shape, std::numeric_limits<double>::quiet_NaN());
    for (auto [element, index] : llvm::zip_equal(shard.data, indices.data))
      if (index != padding)
        element = global.data[static_cast<size_t>(index)];
  }
  return shards;
}

void shardc::resume(DeviceTensors &shards, const Tensor &global,
                    const Placement &placement, bool keepsPadding) {
  for (auto [shard, indices] : llvm::zip_equal(shards, placement.indices))
    for (auto [element, index] : llvm::zip_equal(shard.data, indices.data)) {
      if (index == padding && !keepsPadding)
        element = std::numeric_limits<double>::quiet_NaN();
      if (index != padding && placement.unreduced == 0)
        element = global.data[static_cast<size_t>(index)];
    }
}

static bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

namespace {

class Comparison {
public:
  Comparison(const Tensor &global, double tolerance)
      : global(global), tolerance(tolerance), held(global.data.size()),
        isHeld(global.data.size()) {}

  /// Whether element `index` may have the value `actual` on `device`.
  bool accepts(int64_t device, int64_t index, double actual) {
    double expected = global.data[index];
    bool isRight =
        isSame(expected, actual) || std::fabs(expected - actual) <= tolerance;
    // Replicated elements must agree bit for bit.
    if (!isRight || (isHeld[index] && !isSame(held[index], actual))) {
      divergence = {device, index, isRight ? held[index] : expected, actual};
      return false;
    }
    isHeld[index] = true;
    held[index] = actual;
    return true;
  }

  /// An element that differs, or else one that no device holds.
  std::optional<Divergence> get() {
    if (divergence)
      return divergence;
    for (size_t index = 0; index < isHeld.size(); ++index)
      if (!isHeld[index])
        return Divergence{-1, static_cast<int64_t>(index), global.data[index],
                          std::numeric_limits<double>::quiet_NaN()};
    return std::nullopt;
  }

private:
  const Tensor &global;
  double tolerance;
  std::vector<double> held;
  std::vector<bool> isHeld;
  std::optional<Divergence> divergence;
};

} // namespace

std::optional<Divergence> shardc::findDivergence(const Tensor &global,
                                                 const DeviceTensors &shards,
                                                 const Placement &placement,
                                                 double tolerance,
                                                 const Devices &devices) {
  Comparison comparison(global, tolerance);
  bool isMax = placement.reduction == ReductionKind::Max;
  for (const std::vector<int64_t> &group :
       devices.getGroups(devices.getMesh().getList(placement.unreduced))) {
    int64_t device = group.front();
    const Tensor &indices = placement.indices[device];
    for (size_t i = 0; i < indices.data.size(); ++i) {
      if (indices.data[i] == padding)
        continue;
      double combined = shards[device].data[i];
      bool isAligned = true;
      for (int64_t member : llvm::drop_begin(group)) {
        double term = shards[member].data[i];
        isAligned &= placement.indices[member].data[i] == indices.data[i];
        combined = !isMax                                ? combined + term
                   : std::isnan(term) || term > combined ? term
                                                         : combined;
      }
      if (!isAligned)
        combined = std::numeric_limits<double>::quiet_NaN();
      if (!comparison.accepts(device, static_cast<int64_t>(indices.data[i]),
                              combined))
        return comparison.get();
    }
  }
  return comparison.get();
}

std::string shardc::describe(const Divergence &divergence, const Tensor &global,
                             const Placement &placement, double tolerance,
                             const Devices &devices) {
  std::string text;
  llvm::raw_string_ostream os(text);
  bool isHeld = divergence.device >= 0;
  os << (isHeld ? "has at index [" : "is held by no device at [");
  llvm::interleaveComma(getPlace(divergence.index, global.shape), os);
  os << "]";
  if (isHeld)
    os << (placement.unreduced ? " summed to " : " ")
       << llvm::format("%.17g", divergence.actual) << " on device "
       << devices.toString(divergence.device);
  os << ", expected " << llvm::format("%.17g", divergence.expected);
  if (tolerance > 0)
    os << " within " << llvm::format("%.2g", tolerance);
  if (isHeld && std::isnan(divergence.actual) &&
      !std::isnan(divergence.expected))
    os << "; padding is NaN, so padding counts here";
  return text;
}
