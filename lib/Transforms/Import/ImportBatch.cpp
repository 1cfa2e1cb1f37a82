//===- ImportBatch.cpp - Another batch size -------------------------------===//
//
// Data-flow analysis to a fixed point. The batch spreads from the leading
// dimensions of inputs and labels to every dimension that shares a factor of a
// sharding rule with it, forwards and backwards. The dimensions found are then
// resized.
//
//===----------------------------------------------------------------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-import"

using namespace mlir;
using namespace shardc;

/// Gives dimension i the single factor `numbers[i]`.
static ShardingRule::TensorFactors factors(ArrayRef<int> numbers) {
  ShardingRule::TensorFactors dims;
  for (int number : numbers)
    dims.push_back({number});
  return dims;
}

/// The sharding rule of a composite, without the sizes of its factors.
static ShardingRule getCompositeRule(Operation *op) {
  ShardingRule rule;
  auto upTo = [](int64_t rank) {
    return llvm::to_vector(llvm::seq<int>(0, static_cast<int>(rank)));
  };
  if (auto linear = dyn_cast<LinearOp>(op)) {
    int last = static_cast<int>(getTensorType(linear.getX()).getRank()) - 1;
    SmallVector<int> result = upTo(last);
    result.push_back(last + 1);
    rule.operands = {factors(upTo(last + 1)), factors({last, last + 1})};
    if (linear.getB())
      rule.operands.push_back(factors({last + 1}));
    rule.results = {factors(result)};
  } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
    int rank = static_cast<int>(getTensorType(norm.getX()).getRank());
    rule.operands = {factors(upTo(rank)), factors({rank - 1}),
                     factors({rank - 1})};
    rule.results = {factors(upTo(rank))};
  } else if (isa<SoftmaxCrossEntropyOp>(op)) {
    rule.operands = {factors({0, 1}), factors({0})};
    rule.results = {factors({})};
  } else {
    // Everything else is elementwise, or reduces elementwise products.
    for (Value operand : op->getOperands())
      rule.operands.push_back(factors(upTo(getTensorType(operand).getRank())));
    for (Value result : op->getResults())
      rule.results.push_back(factors(upTo(getTensorType(result).getRank())));
  }
  return rule;
}

namespace {

/// Resizes the batch of one loss function.
class BatchResizer {
public:
  BatchResizer(func::FuncOp loss, int64_t from, int64_t to)
      : loss(loss), from(from), to(to) {}

  LogicalResult run() {
    for (BlockArgument argument : loss.getArguments())
      if (!isa<ParameterAttr>(getRole(loss, argument.getArgNumber())))
        mark(argument, 0);
    do {
      changed = false;
      for (Operation &op : loss.getBody().front())
        spread(&op);
    } while (changed);
    return resize();
  }

private:
  bool isMarked(Value value, int64_t dim) {
    auto found = marks.find(value);
    return found != marks.end() && found->second.test(dim);
  }

  void mark(Value value, int64_t dim) {
    auto [entry, isNew] = marks.try_emplace(
        value, llvm::SmallBitVector(getTensorType(value).getRank()));
    changed |= !entry->second.test(dim);
    entry->second.set(dim);
  }

  /// Marks each dimension of the op that shares a factor with a marked one.
  void spread(Operation *op) {
    ShardingRule rule;
    if (auto core = dyn_cast<ShardingRuleOpInterface>(op))
      rule = core.getShardingRule();
    else if (isa<CompositeOpInterface>(op))
      rule = getCompositeRule(op);
    else
      return;
    SmallVector<int> batchFactors;
    visit(op, rule, [&](Value value, int64_t dim, int factor) {
      if (isMarked(value, dim))
        batchFactors.push_back(factor);
    });
    visit(op, rule, [&](Value value, int64_t dim, int factor) {
      if (llvm::is_contained(batchFactors, factor))
        mark(value, dim);
    });
  }

  /// Calls `visitor` on each dimension with the factor that may be its batch.
  /// In a dimension of several factors, that is the first whose size is a
  /// multiple of the batch.
  void visit(Operation *op, const ShardingRule &rule,
             function_ref<void(Value, int64_t, int)> visitor) {
    auto visitTensor = [&](Value value,
                           const ShardingRule::TensorFactors &dims) {
      for (auto [dim, numbers] : llvm::enumerate(dims)) {
        const int *holder = numbers.begin();
        if (numbers.size() > 1)
          holder = llvm::find_if(numbers, [&](int number) {
            return rule.factors[number].size % from == 0;
          });
        if (holder != numbers.end())
          visitor(value, static_cast<int64_t>(dim), *holder);
      }
    };
    for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
      visitTensor(value, dims);
    for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
      visitTensor(value, dims);
  }

  LogicalResult resize() {
    for (auto &[value, dims] : marks) {
      if (auto argument = dyn_cast<BlockArgument>(value))
        if (isa<ParameterAttr>(getRole(loss, argument.getArgNumber())))
          return mlir::emitError(argument.getLoc())
                 << "argument " << argument.getArgNumber()
                 << ": a dimension of this parameter follows from the batch "
                    "size, so the batch size cannot be changed";
      RankedTensorType type = getTensorType(value);
      SmallVector<int64_t> shape(type.getShape());
      for (int dim : dims.set_bits())
        shape[dim] = shape[dim] / from * to;
      LLVM_DEBUG(llvm::dbgs() << "batch " << to << ": " << type << " becomes "
                              << type.clone(shape) << '\n');
      type = type.clone(shape);
      if (auto constant = value.getDefiningOp<ConstantOp>()) {
        auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
        if (!elements || !elements.isSplat())
          return constant.emitOpError("has a value for each row of the batch, "
                                      "so the batch size cannot be changed");
        constant.setValueAttr(elements.resizeSplat(type));
      }
      value.setType(type);
    }
    loss.setType(FunctionType::get(loss.getContext(),
                                   loss.getBody().getArgumentTypes(),
                                   loss.getResultTypes()));
    return mlir::verify(loss);
  }

  func::FuncOp loss;
  int64_t from, to;
  /// The dimensions of each value that follow from the batch. Values are in the
  /// order in which they were found.
  llvm::MapVector<Value, llvm::SmallBitVector> marks;
  bool changed = false;
};

} // namespace

LogicalResult shardc::overrideBatch(func::FuncOp loss, int64_t batch) {
  if (batch == 0)
    return success();
  if (batch < 0 || batch > maxDimension)
    return loss.emitError("batch size must be at least 1 and at most ")
           << maxDimension << ", got " << batch;
  for (BlockArgument argument : loss.getArguments()) {
    if (isa<ParameterAttr>(getRole(loss, argument.getArgNumber())))
      continue;
    int64_t from = getTensorType(argument).getDimSize(0);
    if (from == batch)
      return success();
    if (failed(BatchResizer(loss, from, batch).run()))
      return failure();
    return verifySizes(loss);
  }
  return loss.emitError("has no inputs, so the batch size cannot be changed");
}

LogicalResult shardc::overrideMicrobatches(func::FuncOp loss, int64_t count) {
  auto module = loss->getParentOfType<ModuleOp>();
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  if (count < 0)
    return loss.emitError("the number of microbatches must be at least 1, got ")
           << count;
  if (count == 0)
    count = training.getMicrobatches();
  for (BlockArgument argument : loss.getArguments()) {
    if (isa<ParameterAttr>(getRole(loss, argument.getArgNumber())))
      continue;
    RankedTensorType type = getTensorType(argument);
    int64_t rows = type.getRank() > 0 ? type.getDimSize(0) : 0;
    if (rows < count)
      return emitError(argument.getLoc())
             << "a batch of " << rows << " rows cannot be cut into " << count
             << " microbatches: expected at least one row for each";
  }
  module->setAttr(trainingAttrName,
                  TrainingAttr::get(module.getContext(), training.getLoss(),
                                    training.getOptimizer(),
                                    training.getClipNorm(),
                                    training.getSchedule(), count));
  return success();
}
