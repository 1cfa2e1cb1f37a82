//===- BatchRows.cpp - The ops that work on rows of the batch -------------===//

#include "shardc/Analysis/BatchRows.h"

#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

using namespace mlir;
using namespace shardc;

FailureOr<BatchRows> BatchRows::find(func::FuncOp step) {
  BatchRows rows;
  for (BlockArgument argument : step.getArguments())
    if (isa_and_nonnull<InputAttr, LabelAttr>(
            getRole(step, argument.getArgNumber())) &&
        getTensorType(argument).getRank() > 0) {
      rows.dims[argument] = 0;
      rows.batchSize =
          std::max(rows.batchSize, getTensorType(argument).getDimSize(0));
    }
  // Others, such as the key of random numbers, are whole in each microbatch.
  for (BlockArgument argument : step.getArguments())
    if (rows.dims.count(argument) &&
        getTensorType(argument).getDimSize(0) != rows.batchSize)
      rows.dims.erase(argument);
  if (failed(rows.analyse(step.getBody().front())))
    return failure();
  return rows;
}

FailureOr<BatchRows> BatchRows::find(Block &body,
                                     ArrayRef<BlockArgument> data) {
  BatchRows rows;
  for (BlockArgument argument : data) {
    rows.dims[argument] = 0;
    rows.batchSize = getTensorType(argument).getDimSize(0);
  }
  if (failed(rows.analyse(body)))
    return failure();
  return rows;
}

LogicalResult BatchRows::analyse(Block &block) {
  do {
    changed = false;
    for (Operation &op : block)
      if (failed(spread(&op)))
        return failure();
    for (Operation &op : llvm::reverse(block))
      if (failed(spread(&op)))
        return failure();
  } while (changed);
  return classify(block);
}

int64_t BatchRows::getDim(Value value) const {
  auto found = dims.find(value);
  return found == dims.end() ? -1 : found->second;
}

LogicalResult BatchRows::mark(Value value, int64_t dim, Location loc) {
  auto [entry, isNew] = dims.try_emplace(value, dim);
  changed |= isNew;
  if (entry->second != dim)
    return emitError(loc) << "has rows of the batch along dimensions "
                          << entry->second << " and " << dim
                          << " of one tensor, so rows depend on each other and "
                             "there are no microbatches";
  auto argument = dyn_cast<BlockArgument>(value);
  if (!isNew || !argument)
    return success();
  return emitError(argument.getLoc())
         << "dimension " << dim
         << " of this argument is rows of the batch, but only inputs and "
            "labels are cut into microbatches";
}

LogicalResult BatchRows::spread(Operation *op) {
  auto core = dyn_cast<ShardingRuleOpInterface>(op);
  if (!core)
    return success();
  ShardingRule rule = core.getShardingRule();
  LogicalResult result = success();
  auto visit = [&](function_ref<void(Value, int64_t, int)> visitor) {
    auto visitTensor = [&](Value value,
                           const ShardingRule::TensorFactors &tensor) {
      // A dimension made of several factors is sharded along the major one.
      for (auto [dim, numbers] : llvm::enumerate(tensor))
        if (!numbers.empty())
          visitor(value, static_cast<int64_t>(dim), numbers.front());
    };
    for (auto [value, tensor] :
         llvm::zip_equal(op->getOperands(), rule.operands))
      visitTensor(value, tensor);
    for (auto [value, tensor] : llvm::zip_equal(op->getResults(), rule.results))
      visitTensor(value, tensor);
  };
  int rows = -1;
  visit([&](Value value, int64_t dim, int factor) {
    if (getDim(value) != dim)
      return;
    FactorKind kind = rule.factors[factor].kind;
    bool mayBeCut = (kind == FactorKind::Parallel || kind == FactorKind::Sum) &&
                    rule.factors[factor].major < 0 &&
                    !rule.factors[factor].oneEach;
    if ((rows >= 0 && factor != rows) || !mayBeCut)
      result = failure();
    rows = factor;
  });
  if (failed(result))
    return op->emitOpError("makes rows of the batch depend on each other, so "
                           "the batch cannot be cut into microbatches");
  if (rows < 0)
    return success();
  factors[op] = rows;
  visit([&](Value value, int64_t dim, int factor) {
    if (factor == rows && failed(mark(value, dim, op->getLoc())))
      result = failure();
  });
  return result;
}

LogicalResult BatchRows::classify(Block &block) {
  for (Operation &op : block) {
    bool needsSums = llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *producer = operand.getDefiningOp();
      return sums.contains(operand) || (producer && later.contains(producer));
    });
    if (needsSums)
      later.insert(&op);
    if (!factors.count(&op))
      continue;
    if (needsSums)
      return op.emitOpError(
          "works on rows of the batch and needs a sum over all of them, which "
          "no microbatch has: the loss must be a sum or a mean over rows");
    ops.push_back(&op);
    for (Value result : op.getResults()) {
      int64_t dim = getDim(result);
      if (dim < 0)
        sums.insert(result);
      else if (getTensorType(result).getDimSize(dim) % batchSize != 0)
        return op.emitOpError("cuts the ")
               << batchSize << " rows of the batch into "
               << getTensorType(result).getDimSize(dim)
               << " groups, so what becomes of a row depends on its place in "
                  "the batch and there are no microbatches";
    }
  }
  return success();
}
