//===- ShrinkSizes.cpp - The same program with smaller sizes --------------===//

#include "shardc/Interpreter/ShrinkSizes.h"

#include "SmallMeshes.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>
#include <set>

using namespace mlir;
using namespace shardc;

/// The most elements of all values on many devices, if nothing were sharded: a
/// gibibyte, and half a minute.
static constexpr double maxElements = 1 << 27;

/// Sizes above 1.
static SmallVector<int64_t> getSizes(const MeshAxes &mesh) {
  SmallVector<int64_t> sizes;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (mesh.getSize(axis) > 1)
      sizes.push_back(mesh.getSize(axis));
  return sizes;
}

namespace {

class Shrinker {
public:
  Shrinker(ModuleOp module, MeshOp mesh)
      : module(module), mesh(mesh), axes(getMeshAxes(mesh)), newAxes(axes),
        gaps(module, axes) {}

  FailureOr<std::vector<ShrunkSize>> run() {
    collect();
    if (!chooseAxes()) {
      mesh.emitError("the partition cannot be verified on ")
          << getNumDevices(axes)
          << " devices, and no mesh small enough cuts its dimensions alike; "
             "give smaller sizes with --mesh";
      return failure();
    }
    rewriteMesh();
    if (hasManyDevices(axes))
      gaps.moveTo(newAxes, module);
    for (auto function : module.getOps<func::FuncOp>())
      rewrite(function);
    if (failed(verify(module)))
      return failure();
    for (auto [from, to] : sizes)
      if (from != to)
        changes.push_back({"", from, to});
    return std::move(changes);
  }

private:
  static ArrayRef<int64_t> getShape(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }

  /// Finds all sizes, and those that must stay.
  void collect() {
    auto add = [&](Value value, bool stays) {
      for (int64_t size : getShape(value)) {
        sizes[size] = size;
        if (stays)
          fixed.insert(size);
      }
    };
    for (auto function : module.getOps<func::FuncOp>()) {
      for (Value argument : function.getArguments())
        add(argument, false);
      function.walk([&](Operation *op) {
        for (Value result : op->getResults())
          add(result, false);
      });
      function.walk([&](AccumulateOp loop) {
        for (auto [operand, slice] :
             llvm::zip(loop.getOperands(), loop.getSlices()))
          addBatch(getShape(operand)[0], getShape(slice)[0]);
      });
      function.walk([&](ConstantOp op) { add(op, !isSplat(op)); });
      function.walk([&](Operation *op) {
        if (isa<ExtractSliceOp, PadOp, ConcatenateOp>(op))
          keepMovedSizes(cast<ShardingRuleOpInterface>(op));
      });
      function.walk(
          [&](PermuteRowsOp op) { fixed.insert(getShape(op)[op.getDim()]); });
      function.walk([&](ReshapeOp op) {
        if (!regroups(op))
          return;
        add(op.getOperand(), true);
        add(op, true);
      });
    }
  }

  /// Keeps the sizes of dimensions that are cut, padded or joined: they depend
  /// on each other.
  void keepMovedSizes(ShardingRuleOpInterface op) {
    for (const Factor &factor : op.getShardingRule().factors)
      if (factor.kind == FactorKind::Whole)
        fixed.insert(factor.size);
  }

  /// The ratio of the batch's rows to a microbatch's rows stays.
  void addBatch(int64_t batch, int64_t rows) {
    sizes[rows] = rows;
    auto [it, isNew] = microbatches.try_emplace(batch, rows);
    if (!isNew && it->second != rows)
      fixed.insert({batch, rows});
    batches[rows].insert(batch);
  }

  static bool isSplat(ConstantOp op) {
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    return elements && elements.isSplat();
  }

  /// Whether dimensions are made of several factors, whose sizes must multiply.
  static bool regroups(ReshapeOp op) {
    ShardingRule rule = op.getShardingRule();
    auto isRegrouped = [](const ShardingRule::TensorFactors &dims) {
      return llvm::any_of(dims, [](const auto &dim) { return dim.size() > 1; });
    };
    return isRegrouped(rule.operands[0]) || isRegrouped(rule.results[0]) ||
           llvm::any_of(rule.factors, [](const Factor &factor) {
             return factor.kind == FactorKind::Whole && factor.size > 1;
           });
  }

  /// Replaces size `from` by `to`, and batches of microbatches of `from` by the
  /// same multiple of `to`; returns false if that is not possible.
  bool trySize(int64_t from, int64_t to, ArrayRef<int64_t> parts,
               ArrayRef<int64_t> newParts) {
    if (from != to && (fixed.count(from) || from < 2))
      return false;
    if (from > 1 && !isCutAlike(from, parts, to, newParts))
      return false;
    for (int64_t batch : batches[from])
      if (!trySize(batch, batch / from * to, parts, newParts))
        return false;
    sizes[from] = to;
    return true;
  }

  /// Finds for each size the smallest that `newParts` cut as `parts` cut it.
  bool chooseSizes(ArrayRef<int64_t> parts, ArrayRef<int64_t> newParts) {
    for (auto &entry : sizes) {
      int64_t from = entry.first;
      // Their microbatches, which are smaller, have been replaced before.
      if (microbatches.count(from))
        continue;
      int64_t to = fixed.count(from) ? from : std::min<int64_t>(from, 2);
      while (to <= from && !trySize(from, to, parts, newParts))
        ++to;
      if (to > from)
        return false;
    }
    return true;
  }

  /// Keeps the axes if there are few devices, else takes the best mesh on which
  /// all sizes can be cut alike.
  bool chooseAxes() {
    if (!hasManyDevices(axes))
      return chooseSizesHere();
    for (const MeshAxes &smaller : getSmallMeshes(axes, gaps))
      if (chooseSizesOn(smaller) &&
          (!hasManyDevices(smaller) || fits(smaller))) {
        newAxes = smaller;
        return true;
      }
    return false;
  }

  /// With the mesh as it is.
  ///
  /// A gap of n parts cuts a dimension as an axis of n devices would. A list
  /// with gaps must divide its dimension by the product of its axes and gaps.
  /// An axis that leaves a list makes a gap of its size; adjacent gaps become
  /// their product; an axis that fills part of a gap leaves the rest of its
  /// size. The partitioner thus asks, for every list that it makes from one
  /// with gaps, whether some product of axes and of factors of gaps divides the
  /// size. With the prime factors of gaps as additional axes, isCutAlike
  /// ensures the same answer for both sizes.
  bool chooseSizesHere() {
    SmallVector<int64_t> parts = getSizes(axes);
    parts.append(gaps.getPrimes().begin(), gaps.getPrimes().end());
    return chooseSizes(parts, parts);
  }

  /// On another mesh, where each gap is the product of the same axes as before:
  /// a list with gaps divides a dimension as all of these axes together would.
  bool chooseSizesOn(const MeshAxes &smaller) {
    SmallVector<int64_t> parts = getSizes(axes), newParts = getSizes(smaller);
    for (int axis : gaps.getRepeatedAxes()) {
      parts.push_back(axes.getSize(axis));
      newParts.push_back(smaller.getSize(axis));
    }
    return chooseSizes(parts, newParts);
  }

  /// Whether memory and time suffice for all values on all devices.
  bool fits(const MeshAxes &smaller) {
    double elements = 0;
    module.walk([&](Operation *op) {
      for (Value result : op->getResults()) {
        double number = 1;
        for (int64_t size : getShape(result))
          number *= sizes[size];
        elements += number;
      }
    });
    return elements * getNumDevices(smaller) <= maxElements;
  }

  void rewriteMesh() {
    SmallVector<Attribute> attributes;
    for (auto [axis, attr] :
         llvm::enumerate(mesh.getAxes().getAsRange<MeshAxisAttr>())) {
      int64_t size = newAxes.getSize(axis);
      // The axis of a pipeline has its size in the mesh alone.
      if (size == axes.getSize(axis)) {
        attributes.push_back(attr);
        continue;
      }
      changes.push_back(
          {attr.getName().getValue().str(), attr.getSize(), size});
      attributes.push_back(
          MeshAxisAttr::get(attr.getContext(), attr.getName(), size));
    }
    mesh.setAxesAttr(ArrayAttr::get(mesh.getContext(), attributes));
  }

  RankedTensorType getType(Value value) {
    SmallVector<int64_t> shape;
    for (int64_t size : getShape(value))
      shape.push_back(sizes[size]);
    return cast<RankedTensorType>(value.getType()).clone(shape);
  }

  /// Number and rows of microbatches, for the new rows.
  std::optional<SmallVector<int64_t>>
  getMicrobatch(std::optional<ArrayRef<int64_t>> microbatch) {
    if (!microbatch)
      return std::nullopt;
    auto it = sizes.find(microbatch->back());
    return SmallVector<int64_t>{microbatch->front(), it == sizes.end()
                                                         ? microbatch->back()
                                                         : it->second};
  }

  /// `rows` of `from` rows, padded, as rows of `to`, of which some are padding,
  /// too.
  static int64_t scaleRows(int64_t rows, int64_t from, int64_t to) {
    return std::max<int64_t>(1, rows * to / from);
  }

  /// If rows of the batch are padded, moves the end of the data: in the notes
  /// on arguments and results, and in the comparisons that mask what is behind.
  void moveEndOfRows(func::FuncOp function) {
    bool isPadded = false;
    auto getMoved = [&](Attribute attr, Type type) -> Attribute {
      auto rows = dyn_cast_or_null<IntegerAttr>(attr);
      if (!rows)
        return {};
      isPadded = true;
      int64_t size = cast<RankedTensorType>(type).getDimSize(0);
      return IntegerAttr::get(rows.getType(),
                              scaleRows(rows.getInt(), size, sizes[size]));
    };
    setArgAttrs(function, unpaddedRowsAttrName, [&](unsigned index) {
      return getMoved(function.getArgAttr(index, unpaddedRowsAttrName),
                      function.getArgumentTypes()[index]);
    });
    setResultAttrs(function, unpaddedRowsAttrName, [&](unsigned index) {
      return getMoved(function.getResultAttr(index, unpaddedRowsAttrName),
                      function.getResultTypes()[index]);
    });
    if (!isPadded)
      return;
    llvm::SmallPtrSet<Operation *, 8> moved;
    function.walk([&](CompareOp op) {
      auto rows = op.getLhs().getDefiningOp<IotaOp>();
      auto constant = op.getRhs().getDefiningOp<ConstantOp>();
      if (!rows || !rows.getMicrobatch() || !constant || !isSplat(constant) ||
          !moved.insert(constant).second)
        return;
      int64_t size = rows.getMicrobatch()->back();
      constant.setValueAttr(
          getSplat(cast<RankedTensorType>(constant.getType()),
                   scaleRows(static_cast<int64_t>(*matchSplat(constant)), size,
                             getMicrobatch(rows.getMicrobatch())->back())));
    });
  }

  void rewrite(func::FuncOp function) {
    moveEndOfRows(function);
    for (BlockArgument argument : function.getArguments()) {
      argument.setType(getType(argument));
      unsigned index = argument.getArgNumber();
      if (auto classes = function.getArgAttrOfType<IntegerAttr>(
              index, labelClassesAttrName);
          classes && sizes.count(classes.getInt()))
        function.setArgAttr(
            index, labelClassesAttrName,
            IntegerAttr::get(classes.getType(), sizes[classes.getInt()]));
    }
    function.walk([&](Operation *op) {
      if (auto loop = dyn_cast<AccumulateOp>(op))
        for (Value slice : loop.getSlices())
          slice.setType(getType(slice));
      for (Value result : op->getResults())
        result.setType(getType(result));
      if (auto iota = dyn_cast<IotaOp>(op))
        iota.setMicrobatch(getMicrobatch(iota.getMicrobatch()));
      if (auto random = dyn_cast<RandomUniformOp>(op))
        random.setMicrobatch(getMicrobatch(random.getMicrobatch()));
      if (auto constant = dyn_cast<ConstantOp>(op);
          constant && isSplat(constant))
        constant.setValueAttr(
            cast<DenseElementsAttr>(constant.getValue())
                .resizeSplat(cast<RankedTensorType>(constant.getType())));
    });
    function.setType(FunctionType::get(
        function.getContext(), function.getBody().getArgumentTypes(),
        function.getBody().front().getTerminator()->getOperandTypes()));
  }

  ModuleOp module;
  MeshOp mesh;
  MeshAxes axes, newAxes;
  StridedGaps gaps;
  /// From old to new; ordered, so that the list of changes is.
  std::map<int64_t, int64_t> sizes;
  std::set<int64_t> fixed;
  /// Rows of a microbatch by those of the batch, and the inverse.
  std::map<int64_t, int64_t> microbatches;
  std::map<int64_t, std::set<int64_t>> batches;
  std::vector<ShrunkSize> changes;
};

} // namespace

FailureOr<std::vector<ShrunkSize>> shardc::shrinkSizes(ModuleOp module) {
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh))
    return failure();
  return Shrinker(module, *mesh).run();
}
