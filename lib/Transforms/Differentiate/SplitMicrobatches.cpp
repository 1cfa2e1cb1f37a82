//===- SplitMicrobatches.cpp - A loop over microbatches -------------------===//
//
// Gradient accumulation over microbatches (GPipe, arXiv 1811.06965). Ops of a
// program that work on rows of the batch (BatchRows) move into the body of a
// shardc.accumulate and work there on the rows of one microbatch. The loop adds
// up their sums over rows. The summands are those of the whole batch, so that
// nothing needs to be scaled. A result of the program that has the rows of the
// batch is a sum, too: in each run its other rows are zero.
//
// This cuts the train step, and with a pipeline also the evaluation.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/BatchRows.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-split-microbatches"

namespace shardc {
#define GEN_PASS_DEF_SPLITMICROBATCHESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Builds the loop of one program.
class Splitter {
public:
  /// Borrows `rows`, which must have ops. The loop belongs to `part`.
  Splitter(const BatchRows &rows, int64_t count, Part part)
      : rows(rows), count(count), part(part), builder(rows.getOps().front()) {}

  LogicalResult run() {
    isInLoop.insert(rows.getOps().begin(), rows.getOps().end());
    for (Operation *op : rows.getOps())
      for (Value result : op->getResults())
        if (int64_t dim = rows.getDim(result); dim > 0 && isUsedBehind(result))
          return op->emitOpError("has rows of the batch along dimension ")
                 << dim << "; results of a program need them along the first";
    buildLoop();
    for (Operation *op : rows.getOps())
      if (failed(clone(op)))
        return failure();
    SmallVector<Value> summands;
    for (Value sum : sums)
      summands.push_back(scatterRows(sum));
    builder.create<YieldOp>(loop.getLoc(), summands);
    for (auto [sum, result] : llvm::zip_equal(sums, loop.getResults()))
      sum.replaceUsesWithIf(result, [&](OpOperand &use) {
        return !isInLoop.contains(use.getOwner());
      });
    // Ops that need a sum and stand before the loop move behind it.
    Operation *last = loop;
    for (Operation &op : llvm::make_early_inc_range(llvm::make_range(
             loop->getBlock()->begin(), Block::iterator(loop))))
      if (rows.needsSum(&op)) {
        LLVM_DEBUG(llvm::dbgs()
                   << "behind the loop: " << describeOp(&op) << '\n');
        op.moveAfter(last);
        last = &op;
      }
    LLVM_DEBUG(llvm::dbgs() << "loop over " << count
                            << " microbatches: " << rows.getOps().size()
                            << " ops, " << loop.getNumOperands()
                            << " operands, " << sums.size() << " sums\n");
    for (Operation *op : llvm::reverse(rows.getOps()))
      op->erase();
    for (Operation *op : constants)
      if (op->use_empty())
        op->erase();
    return success();
  }

private:
  /// The type of `value` for one microbatch.
  RankedTensorType getPartType(Value value) {
    RankedTensorType type = getTensorType(value);
    int64_t dim = rows.getDim(value);
    if (dim < 0)
      return type;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= count;
    return type.clone(shape);
  }

  /// The summand of `sum`, which may be the rows of all microbatches.
  Value scatterRows(Value sum) {
    Value value = mapping.lookup(sum);
    if (rows.isSum(sum) || count == 1)
      return value;
    auto scatter = builder.create<ScatterRowsOp>(
        value.getLoc(), sum.getType(), value, static_cast<uint64_t>(count));
    scatter->setDiscardableAttrs(
        value.getDefiningOp()->getDiscardableAttrDictionary());
    return scatter;
  }

  /// Whether the loop must make `value`: a sum over rows, or rows of the batch
  /// that are needed behind the loop.
  bool isNeeded(Value value) {
    return rows.isSum(value) ? !value.use_empty() : isUsedBehind(value);
  }

  bool isUsedBehind(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !isInLoop.contains(user);
    });
  }

  /// Builds the loop, with an empty body, before the last of the ops.
  void buildLoop() {
    llvm::SetVector<Value> operands;
    for (Operation *op : rows.getOps()) {
      for (Value operand : op->getOperands())
        if (isa<BlockArgument>(operand) && rows.getDim(operand) >= 0)
          operands.insert(operand);
      for (Value result : op->getResults())
        if (isNeeded(result))
          sums.push_back(result);
    }
    Operation *last = rows.getOps().back();
    builder.setInsertionPoint(last);
    SmallVector<Type> types;
    for (Value sum : sums)
      types.push_back(sum.getType());
    loop = builder.create<AccumulateOp>(
        last->getParentOfType<func::FuncOp>().getLoc(), types,
        builder.getI64IntegerAttr(count), operands.getArrayRef());
    loop->setAttr(partAttrName, PartAttr::get(builder.getContext(), part));
    Block *body = builder.createBlock(&loop.getBody());
    for (Value operand : operands)
      mapping.map(operand,
                  body->addArgument(getPartType(operand), operand.getLoc()));
  }

  /// Copies `op` into the body, for the rows of a microbatch.
  LogicalResult clone(Operation *op) {
    // Recomputing a constant in each iteration is cheaper than keeping it.
    for (Value operand : op->getOperands())
      if (auto constant = operand.getDefiningOp<ConstantOp>();
          constant && !mapping.contains(operand)) {
        builder.clone(*constant, mapping);
        constants.insert(constant);
      }
    Operation *copy = builder.clone(*op, mapping);
    for (auto [result, part] :
         llvm::zip_equal(op->getResults(), copy->getResults()))
      part.setType(getPartType(result));
    Value result = op->getResult(0);
    int64_t dim = rows.getDim(result);
    if (auto constant = dyn_cast<ConstantOp>(copy)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!elements || !elements.isSplat())
        return op->emitOpError("has a value for each row of the batch, so the "
                               "batch cannot be cut into microbatches");
      constant.setValueAttr(elements.resizeSplat(getPartType(result)));
    } else if (auto iota = dyn_cast<IotaOp>(copy)) {
      if (dim == static_cast<int64_t>(iota.getDim()))
        iota.setMicrobatch(getMicrobatch(result));
    } else if (auto random = dyn_cast<RandomUniformOp>(copy)) {
      if (dim != 0)
        return op->emitOpError("has rows of the batch along dimension ")
               << dim << "; microbatches need them along the first";
      random.setMicrobatch(getMicrobatch(result));
    }
    return success();
  }

  /// The attribute `microbatch` of the copy of `whole`: the number of
  /// microbatches, and the rows of each.
  SmallVector<int64_t> getMicrobatch(Value whole) {
    return {count, getTensorType(whole).getDimSize(rows.getDim(whole)) / count};
  }

  const BatchRows &rows;
  int64_t count;
  Part part;
  OpBuilder builder;
  AccumulateOp loop;
  /// The ops that work on rows.
  llvm::DenseSet<Operation *> isInLoop;
  /// The values that the loop makes, in program order.
  SmallVector<Value> sums;
  llvm::SetVector<Operation *> constants;
  /// Maps values of the whole batch to values of a microbatch.
  IRMapping mapping;
};

struct SplitMicrobatchesPass
    : shardc::impl::SplitMicrobatchesPassBase<SplitMicrobatchesPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(),
                               ModulePhase::Differentiate,
                               ModulePhase::Differentiate)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
    if (!training)
      return;
    // The tasks of a pipeline are cut out of the loop, even if it runs once.
    bool isPipeline = module->hasAttr(pipelineAttrName);
    int64_t count = training.getMicrobatches();
    auto cut = [&](StringRef name, Part part) {
      auto program = module.lookupSymbol<func::FuncOp>(name);
      return !program || succeeded(split(program, count, part));
    };
    if ((count > 1 || isPipeline) && !cut("train_step", Part::Backward))
      return signalPassFailure();
    if (isPipeline && !cut("evaluate", Part::Forward))
      signalPassFailure();
  }

  /// Cuts the rows of `program` into `count` microbatches.
  static LogicalResult split(func::FuncOp program, int64_t count, Part part) {
    if (auto loops = program.getOps<AccumulateOp>(); !loops.empty())
      return (*loops.begin())
          .emitOpError("shows that the batch is cut into "
                       "microbatches already");
    FailureOr<BatchRows> rows = BatchRows::find(program, count);
    if (failed(rows) || rows->getOps().empty())
      return rows;
    return Splitter(*rows, count, part).run();
  }
};

} // namespace
