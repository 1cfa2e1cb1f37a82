//===- ShrinkSizes.cpp - The same program, small --------------------------===//

#include "shardc/Interpreter/ShrinkSizes.h"

#include "shardc/Analysis/ModuleGraph.h"

#include "mlir/IR/Verifier.h"

#include <map>
#include <set>

using namespace mlir;
using namespace shardc;

/// More devices than this are replaced by fewer.
static constexpr int64_t maxDevices = 64;

static int64_t getProduct(ArrayRef<int64_t> axes) {
  int64_t product = 1;
  for (int64_t size : axes)
    product *= size;
  return product;
}

namespace {

class Shrinker {
public:
  Shrinker(ModuleOp module, MeshOp mesh) : module(module), mesh(mesh) {
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      if (axis.getSize() > 1)
        axes.push_back(axis.getSize());
    module.walk([&](Operation *op) { collectGaps(op); });
  }

  FailureOr<std::vector<ShrunkSize>> run() {
    collect();
    if (!chooseAxes()) {
      mesh.emitError("the partition cannot be verified on ")
          << getProduct(axes) << " devices, and no mesh of at most "
          << maxDevices
          << " cuts its dimensions alike; give smaller sizes with --mesh";
      return failure();
    }
    rewriteMesh();
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
      function.walk([&](ReshapeOp op) {
        if (!regroups(op))
          return;
        add(op.getOperand(), true);
        add(op, true);
      });
    }
  }

  /// Rows of the batch stay so many times those of a microbatch.
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

  /// Adds the gaps of the strided shards of `op`.
  ///
  /// A gap of n parts cuts a dimension as an axis of n devices would. A list
  /// with gaps must divide its dimension: by the product of its axes and gaps.
  /// Where an axis leaves a list a gap of its size stays, adjacent gaps become
  /// their product, and an axis that fills a part of a gap leaves the rest of
  /// its size. So whatever list the partitioner makes of one with gaps, what it
  /// asks is whether some product of axes and of factors of the gaps divides
  /// the size. With the prime factors of gaps as further axes isCutAlike
  /// answers that, and more, alike for both sizes.
  void collectGaps(Operation *op) {
    auto assignment = op->getAttrOfType<AssignmentAttr>("shardc.assignment");
    if (!assignment)
      return;
    for (DimShardingAttr factor : assignment.getFactors()) {
      std::map<int64_t, int> primes;
      for (StringAttr entry : factor.getAxes()) {
        int64_t gap = DimShardingAttr::getGapSize(entry);
        for (int64_t prime = 2; gap > 1; ++prime)
          for (; gap % prime == 0; gap /= prime)
            ++primes[prime];
      }
      // Dimensions are cut on their own: the most gaps of any are enough.
      for (auto [prime, number] : primes)
        if (int more = number - llvm::count(gaps, prime); more > 0)
          gaps.append(more, prime);
    }
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

  /// Whether size `from` may become `to`, and batches of microbatches of `from`
  /// as many times that as before; if so, they do.
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

  /// Finds for each size the smallest that over `newAxes` is cut alike.
  bool chooseSizes(ArrayRef<int64_t> newAxes) {
    SmallVector<int64_t> parts(axes), newParts(newAxes);
    parts.append(gaps);
    newParts.append(gaps);
    for (auto &entry : sizes) {
      int64_t from = entry.first;
      // Their microbatches, which are smaller, have decided.
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

  /// Keeps the axes if there are few devices, else takes the fewest with which
  /// all sizes can be cut alike.
  bool chooseAxes() {
    newAxes = axes;
    if (getProduct(axes) <= maxDevices)
      return chooseSizes(axes);
    // Gaps have the sizes of the axes that left them.
    if (!gaps.empty())
      return false;
    std::vector<SmallVector<int64_t>> meshes = {{}};
    for (int64_t size : axes) {
      std::vector<SmallVector<int64_t>> longer;
      for (const SmallVector<int64_t> &start : meshes)
        for (int64_t smaller = 2; smaller <= std::min(size, maxDevices);
             ++smaller) {
          longer.push_back(start);
          longer.back().push_back(smaller);
          if (getProduct(longer.back()) > maxDevices)
            longer.pop_back();
        }
      meshes = std::move(longer);
    }
    llvm::stable_sort(meshes, [](const auto &lhs, const auto &rhs) {
      return getProduct(lhs) < getProduct(rhs);
    });
    for (const SmallVector<int64_t> &smaller : meshes)
      if (chooseSizes(smaller)) {
        newAxes = smaller;
        return true;
      }
    return false;
  }

  void rewriteMesh() {
    SmallVector<Attribute> attributes;
    const int64_t *next = newAxes.begin();
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
      int64_t size = axis.getSize() > 1 ? *next++ : 1;
      if (size != axis.getSize())
        changes.push_back(
            {axis.getName().getValue().str(), axis.getSize(), size});
      attributes.push_back(
          MeshAxisAttr::get(axis.getContext(), axis.getName(), size));
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

  void rewrite(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      argument.setType(getType(argument));
      unsigned index = argument.getArgNumber();
      if (auto classes = function.getArgAttrOfType<IntegerAttr>(
              index, "shardc.label_classes");
          classes && sizes.count(classes.getInt()))
        function.setArgAttr(
            index, "shardc.label_classes",
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
  /// Sizes above 1 of the mesh's axes.
  SmallVector<int64_t> axes, newAxes;
  /// Prime factors of the gaps of strided shards.
  SmallVector<int64_t> gaps;
  /// From old to new; ordered, so that changes are.
  std::map<int64_t, int64_t> sizes;
  std::set<int64_t> fixed;
  /// Rows of a microbatch by those of the batch, and the other way round.
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
