//===- SplitMicrobatches.cpp - A loop over microbatches -------------------===//
//
// Gradient accumulation over microbatches (GPipe, arXiv 1811.06965). Ops of a
// program that work on rows of the batch (BatchRows) move into the body of a
// shardc.accumulate and work there on the rows of one microbatch. The loop adds
// up their sums over rows. The summands are those of the whole batch, so that
// nothing needs to be scaled. A result of the program that has the rows of the
// batch is a sum, too: in each run its other rows are zero.
//
// This cuts the train step, and with a pipeline also evaluation and prediction.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/BatchRows.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"
#include "shardc/Dialect/Shardc/IR/Prediction.h"
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
  /// Borrows `rows`, which must have ops. The batch is padded to
  /// `paddedBatchSize` rows, a multiple of `count`. The loop belongs to `part`.
  Splitter(const BatchRows &rows, int64_t count, int64_t paddedBatchSize,
           Part part)
      : rows(rows), count(count), paddedBatchSize(paddedBatchSize), part(part),
        builder(rows.getOps().front()) {}

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
    if (isPadded())
      padProgram();
    for (Operation *op : llvm::reverse(rows.getOps()))
      op->erase();
    for (Operation *op : constants)
      if (op->use_empty())
        op->erase();
    return success();
  }

private:
  bool isPadded() const { return paddedBatchSize != rows.getBatchSize(); }

  /// The type of `value` with `batchSize` rows instead of those of the batch.
  RankedTensorType getTypeFor(Value value, int64_t batchSize) {
    RankedTensorType type = getTensorType(value);
    int64_t dim = rows.getDim(value);
    if (dim < 0)
      return type;
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = shape[dim] / rows.getBatchSize() * batchSize;
    return type.clone(shape);
  }

  /// The type of `value` for one microbatch.
  RankedTensorType getPartType(Value value) {
    return getTypeFor(value, paddedBatchSize / count);
  }

  /// The type of `value` for all microbatches.
  RankedTensorType getPaddedType(Value value) {
    return getTypeFor(value, paddedBatchSize);
  }

  /// The summand of `sum`, which may be the rows of all microbatches.
  Value scatterRows(Value sum) {
    Value value = mapping.lookup(sum);
    if (rows.isSum(sum) || count == 1)
      return value;
    auto scatter =
        builder.create<ScatterRowsOp>(value.getLoc(), getPaddedType(sum), value,
                                      static_cast<uint64_t>(count));
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
      types.push_back(getPaddedType(sum));
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
    if (isPadded() && llvm::all_of(op->getResults(), [&](Value result) {
          return rows.isSum(result);
        }))
      maskOperands(op, copy);
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
    return {count, getPartType(whole).getDimSize(rows.getDim(whole))};
  }

  /// Lets `copy`, the copy of `op`, add up zeros for rows of padding.
  void maskOperands(Operation *op, Operation *copy) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(copy);
    for (auto [whole, operand] :
         llvm::zip_equal(op->getOperands(), copy->getOpOperands())) {
      if (rows.getDim(whole) < 0)
        continue;
      Value &masked = masks[{operand.get(), copy->getAttr(partAttrName),
                             copy->getAttr(stageAttrName)}];
      if (!masked)
        masked = mask(whole, operand.get(), copy);
      operand.set(masked);
    }
  }

  /// Zeros where `value`, which is `whole` in a microbatch, has padding. The
  /// ops belong to the part and to the stage of `user`.
  Value mask(Value whole, Value value, Operation *user) {
    Location loc = user->getLoc();
    RankedTensorType type = getPartType(whole);
    RankedTensorType rowType = type.clone(builder.getI32Type());
    Value row = builder.create<IotaOp>(
        loc, rowType, rows.getDim(whole), ShardingAttr(),
        builder.getDenseI64ArrayAttr(getMicrobatch(whole)));
    Value end =
        constantSplat(builder, loc, rowType,
                      static_cast<double>(
                          getTensorType(whole).getDimSize(rows.getDim(whole))));
    Value isData = compare(builder, loc, CompareKind::LT, row, end);
    Value zero = constantSplat(builder, loc, type, 0);
    Value masked = builder.create<SelectOp>(loc, type, isData, value, zero);
    for (Value each : {row, end, isData, zero, masked})
      setPlaceInStep(each.getDefiningOp(), user);
    return masked;
  }

  /// Gives inputs and results the rows of padding, and notes on them how many
  /// rows are data.
  void padProgram() {
    auto program = loop->getParentOfType<func::FuncOp>();
    Operation *terminator = loop->getBlock()->getTerminator();
    auto getRows = [&](Value whole) {
      return rows.getDim(whole) < 0
                 ? Attribute()
                 : builder.getI64IntegerAttr(getTensorShape(whole).front());
    };
    setArgAttrs(program, unpaddedRowsAttrName, [&](unsigned index) {
      return getRows(program.getArgument(index));
    });
    setResultAttrs(program, unpaddedRowsAttrName, [&](unsigned index) {
      auto result = dyn_cast<OpResult>(terminator->getOperand(index));
      return result && result.getOwner() == loop
                 ? getRows(sums[result.getResultNumber()])
                 : Attribute();
    });
    for (BlockArgument argument : program.getArguments())
      argument.setType(getPaddedType(argument));
    program.setType(builder.getFunctionType(
        loop->getBlock()->getArgumentTypes(), terminator->getOperandTypes()));
  }

  const BatchRows &rows;
  int64_t count;
  int64_t paddedBatchSize;
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
  /// Masked values, by value of a microbatch, part and stage. Never iterated.
  llvm::DenseMap<std::tuple<Value, Attribute, Attribute>, Value> masks;
};

/// The most shards of the rows of the batch that annotations ask for: the
/// devices over all mesh axes that they name along them.
int64_t getAnnotatedShards(func::FuncOp program, const BatchRows &rows) {
  auto meshes = program->getParentOfType<ModuleOp>().getOps<MeshOp>();
  if (meshes.empty())
    return 1;
  MeshAxes meshAxes = getMeshAxes(*meshes.begin());
  AxisSet axes = 0;
  auto add = [&](Value value, ShardingAttr sharding) {
    int64_t dim = rows.getDim(value);
    if (!sharding || dim < 0)
      return;
    for (int axis : getLayout(sharding, meshAxes).dims[dim])
      axes |= isGap(axis) ? 0 : axisBit(axis);
  };
  for (BlockArgument argument : program.getArguments())
    add(argument, program.getArgAttrOfType<ShardingAttr>(
                      argument.getArgNumber(), shardingAttrName));
  for (auto constraint : program.getOps<ShardingConstraintOp>())
    add(constraint.getResult(),
        constraint.getSharding().value_or(ShardingAttr()));
  return meshAxes.getNumShards(axes);
}

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
    auto step = module.lookupSymbol<func::FuncOp>("train_step");
    if (!step || (count == 1 && !isPipeline))
      return;
    FailureOr<BatchRows> rows = analyse(step);
    if (failed(rows))
      return signalPassFailure();
    FailureOr<int64_t> padded = getPaddedBatchSize(step, *rows, count);
    if (failed(padded) || failed(split(*rows, count, *padded, Part::Backward)))
      return signalPassFailure();
    if (*padded == rows->getBatchSize() && !isPipeline)
      return;
    for (StringRef name : {StringRef("evaluate"), StringRef(kPredictName)}) {
      auto program = module.lookupSymbol<func::FuncOp>(name);
      if (!program)
        continue;
      FailureOr<BatchRows> ownRows = analyse(program);
      if (failed(ownRows) ||
          failed(split(*ownRows, count, *padded, Part::Forward)))
        return signalPassFailure();
    }
  }

  static FailureOr<BatchRows> analyse(func::FuncOp program) {
    if (auto loops = program.getOps<AccumulateOp>(); !loops.empty())
      return (*loops.begin())
          .emitOpError("shows that the batch is cut into "
                       "microbatches already");
    return BatchRows::find(program);
  }

  /// Whether a policy uneven=error concerns the rows of the batch.
  static bool mustDivide(func::FuncOp step, const BatchRows &rows) {
    auto module = step->getParentOfType<ModuleOp>();
    if (auto policy = module->getAttrOfType<StringAttr>(unevenAttrName);
        policy &&
        symbolizeUnevenPolicy(policy.getValue()) == UnevenPolicy::Error)
      return true;
    return llvm::any_of(step.getArguments(), [&](BlockArgument argument) {
      auto sharding = step.getArgAttrOfType<ShardingAttr>(
          argument.getArgNumber(), shardingAttrName);
      return rows.getDim(argument) >= 0 && sharding &&
             sharding.getUneven() == UnevenPolicy::Error;
    });
  }

  /// The rows of `count` microbatches that hold the batch, equally many of each
  /// on every device that annotations shard the rows over. Fails with an error
  /// if there must be no padding.
  static FailureOr<int64_t>
  getPaddedBatchSize(func::FuncOp step, const BatchRows &rows, int64_t count) {
    int64_t batchSize = rows.getBatchSize();
    // A single microbatch may be uneven, as the batch may without a loop.
    if (count == 1 || rows.getOps().empty())
      return batchSize;
    int64_t shards = getAnnotatedShards(step, rows);
    int64_t padded = llvm::alignTo(batchSize, count * shards);
    if (padded == batchSize)
      return batchSize;
    auto emitError = [&] {
      return step.emitError("a batch of ")
             << batchSize << " rows does not divide into " << count
             << " microbatches x " << shards << " shards, ";
    };
    if (mustDivide(step, rows))
      return emitError() << "and the policy is uneven=error";
    if (padded > maxDimension)
      return emitError() << "and padding would make more than " << maxDimension;
    return padded;
  }

  /// Cuts the rows of a program into `count` microbatches.
  static LogicalResult split(const BatchRows &rows, int64_t count,
                             int64_t paddedBatchSize, Part part) {
    if (rows.getOps().empty())
      return success();
    return Splitter(rows, count, paddedBatchSize, part).run();
  }
};

} // namespace
