//===- Placement.h - The elements that a device holds -----------*- C++ -*-===//
//
// A placement maps every element of every device's tensor to an element of the
// global tensor. It is kept as index tensors, which go through the collectives
// as the values do, without assumptions about intermediate layouts. Plain
// values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_PLACEMENT_H
#define SHARDC_INTERPRETER_PLACEMENT_H

#include "shardc/Interpreter/EvaluateCollective.h"

#include <string>

namespace shardc {

struct Placement {
  /// Row-major indices into the global tensor; -1 is padding.
  DeviceTensors indices;
  /// Axes over which the devices' elements are partial.
  AxisSet unreduced = 0;
  ReductionKind reduction = ReductionKind::Sum;
  /// For messages.
  std::string text;
};

/// Blocks of ceil(size / shards) in each dimension, or strided shards, as
/// `layout` says.
Placement getPlacement(const Layout &layout, llvm::ArrayRef<int64_t> shape,
                       const Devices &devices);

/// The placement of result `index` of collective `op` if its operand is at
/// `operand`.
Placement movePlacement(mlir::Operation *op, unsigned index,
                        const Placement &operand, const Devices &devices);

/// The shards of `global`, which is reduced; padding is NaN.
DeviceTensors scatter(const Tensor &global, const Placement &placement);

/// The tensors with which devices that hold `shards` of `global` continue: the
/// bits of `global`, except for partial sums, and NaN as padding, unless
/// `keepsPadding`.
void resume(DeviceTensors &shards, const Tensor &global,
            const Placement &placement, bool keepsPadding);

/// An element that differs from that of the global tensor.
struct Divergence {
  /// Device that holds it; -1 if none holds the element.
  int64_t device;
  /// Row-major index into the global tensor.
  int64_t index;
  double expected, actual;
};

/// Assembles `shards` (partial sums added, padding ignored) and compares with
/// `global`: nothing if every element differs by at most `tolerance`, is held
/// by some device, and is the same bits on all that hold it. Two NaN are equal.
std::optional<Divergence> findDivergence(const Tensor &global,
                                         const DeviceTensors &shards,
                                         const Placement &placement,
                                         double tolerance,
                                         const Devices &devices);

/// "has at index [2, 0] 5 on device 2 (data=2), expected 7", with the
/// tolerance, and whether it is padding.
std::string describe(const Divergence &divergence, const Tensor &global,
                     const Placement &placement, double tolerance,
                     const Devices &devices);

} // namespace shardc

#endif // SHARDC_INTERPRETER_PLACEMENT_H
