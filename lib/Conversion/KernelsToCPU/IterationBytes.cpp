//===- IterationBytes.cpp - The bytes that iterations touch ---------------===//

#include "IterationBytes.h"

#include "shardc/Analysis/Liveness.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace shardc {

namespace {

/// What iterations need of a value.
enum class Need { Nothing, OwnRows, Anything };

/// Follows the rows of a nest's results back to the kernel's operands.
class RowNeeds {
public:
  RowNeeds(const KernelNest &nest, int64_t rows) : rows(rows) {
    for (Value result : nest.fullResults)
      add(result, Need::OwnRows);
    for (Value result : nest.outerResults)
      add(result, Need::OwnRows);
  }

  /// Of values of the block, whose ops are followed.
  void follow(Block &block) {
    for (Operation &op : llvm::reverse(block.without_terminator()))
      for (OpResult result : op.getResults())
        followResult(result);
  }
  Need of(Value value) const {
    auto it = needs.find(value);
    return it == needs.end() ? Need::Nothing : it->second;
  }

private:
  void add(Value value, Need need) {
    note(value,
         need == Need::OwnRows && !hasRows(value) ? Need::Anything : need);
  }
  void note(Value value, Need need) {
    Need &known = needs.try_emplace(value, Need::Nothing).first->second;
    known = std::max(known, need);
  }
  bool hasRows(Value value) const {
    auto shape = getTensorShape(value);
    return !shape.empty() && shape[0] == rows;
  }
  void followResult(OpResult result);

  const int64_t rows;
  llvm::DenseMap<Value, Need> needs;
};

void RowNeeds::followResult(OpResult result) {
  Need need = of(result);
  if (need == Need::Nothing)
    return;
  Operation *op = result.getOwner();
  // However an argument's elements are grouped, each row has as many of them.
  if (auto reshape = dyn_cast<ReshapeOp>(op);
      reshape && !reshape.getOperand().getDefiningOp())
    return note(reshape.getOperand(), need);
  ShardingRule rule;
  int factor = -1;
  if (auto withRule = dyn_cast<ShardingRuleOpInterface>(op);
      withRule && need == Need::OwnRows) {
    rule = withRule.getShardingRule();
    const ShardingRule::DimFactors &ofRows =
        rule.results[result.getResultNumber()][0];
    // A permutation of rows has another row of its operand in each place.
    if (ofRows.size() == 1 && rule.factors[ofRows[0]].size == rows &&
        rule.factors[ofRows[0]].kind == FactorKind::Parallel &&
        !rule.factors[ofRows[0]].oneEach)
      factor = ofRows[0];
  }
  for (auto [position, operand] : llvm::enumerate(op->getOperands())) {
    const bool alike =
        factor >= 0 && hasRows(operand) &&
        rule.operands[position][0] == ShardingRule::DimFactors{factor};
    add(operand, alike ? Need::OwnRows : Need::Anything);
  }
}

} // namespace

/// Rows of results for each iteration; 0: there is no such number.
static int64_t getRowsPerIteration(const NestPlan &plan) {
  const KernelNest &nest = plan.nest;
  if (nest.shape.empty() || llvm::is_contained(nest.reduced, 0))
    return 0;
  const int64_t rows = nest.shape[0];
  auto ofUnits = [&](int64_t unitsPerRow, int64_t rowsPerUnit) -> int64_t {
    if (unitsPerRow == 0 || plan.unitsPerIteration % unitsPerRow != 0)
      return 0;
    return plan.unitsPerIteration / unitsPerRow * rowsPerUnit;
  };
  switch (nest.kind) {
  case NestKind::Map:
  case NestKind::Rows:
    // With lanes along the rows there is one unit.
    return plan.units % rows == 0 ? ofUnits(plan.units / rows, 1) : 0;
  case NestKind::Columns: {
    // Of short rows, with lanes along them, or of blocks of rows.
    SmallVector<int64_t> kept = splitShape(nest).kept;
    return getLastLongDim(kept) > 0 ? ofUnits(plan.units / rows, 1)
                                    : ofUnits(1, columnBlock);
  }
  case NestKind::Gemm:
    if (plan.gemm.batch > 1)
      return rows == plan.gemm.batch ? ofUnits(plan.units / rows, 1) : 0;
    if (rows != (plan.isSwapped ? plan.gemm.n : plan.gemm.m))
      return 0;
    return ofUnits(1, plan.isInnerProduct ? 1
                      : plan.isSwapped    ? columnBlock
                                          : plan.unitRows);
  }
  return 0;
}

SmallVector<int64_t> getBytesPerIteration(KernelOp kernel, const NestPlan &plan,
                                          ArrayRef<int64_t> touched) {
  SmallVector<int64_t> bytes(touched.size(), 0);
  if (plan.getExtent() == 1)
    return bytes;
  Block &body = kernel.getBody().front();
  auto getBuffer = [&](int64_t position) -> Value {
    if (position < int64_t(body.getNumArguments()))
      return body.getArgument(position);
    return body.getTerminator()->getOperand(position - body.getNumArguments());
  };
  const int64_t elements = getNumElements(plan.nest.shape);
  const int64_t rowsPerIteration = getRowsPerIteration(plan);
  std::optional<RowNeeds> needs;
  if (rowsPerIteration > 0) {
    needs.emplace(plan.nest, plan.nest.shape[0]);
    needs->follow(body);
  }
  for (auto [position, found] : llvm::zip_equal(touched, bytes)) {
    Value buffer = getBuffer(position);
    const int64_t size = getNumBytes(buffer.getType());
    if (plan.isFlat && plan.nest.kind == NestKind::Map) {
      if (getNumElements(getTensorShape(buffer)) == elements)
        found = plan.unitsPerIteration * (size / elements);
    } else if (needs && needs->of(buffer) == Need::OwnRows) {
      found = rowsPerIteration * (size / plan.nest.shape[0]);
    }
  }
  return bytes;
}

} // namespace shardc
