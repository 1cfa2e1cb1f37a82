//===- ThreadLoops.cpp - The threads of a block as loops ------------------===//

#include "ThreadLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace shardc {

/// Whether the op is or contains a barrier or a shuffle.
static bool isMeeting(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<gpu::BarrierOp, gpu::ShuffleOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

ThreadLoops::ThreadLoops(OpBuilder &builder, Block *entry, int64_t threads)
    : builder(builder), entry(entry), threads(threads) {}

Value ThreadLoops::getConstant(Location loc, int64_t value) {
  return builder.create<arith::ConstantOp>(loc,
                                           builder.getI64IntegerAttr(value));
}

void ThreadLoops::forEachThread(Location loc,
                                llvm::function_ref<void(Value)> body) {
  auto loop = builder.create<scf::ForOp>(
      loc, getConstant(loc, 0), getConstant(loc, threads), getConstant(loc, 1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value ThreadLoops::getArrayAddress(Value value, Value thread) {
  Location loc = value.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value &array = arrays[value];
  if (!array) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    array = builder.create<LLVM::AllocaOp>(loc, pointer, value.getType(),
                                           getConstant(loc, threads),
                                           /*alignment=*/32);
  }
  return builder.create<LLVM::GEPOp>(loc, pointer, value.getType(), array,
                                     ValueRange{thread});
}

Value ThreadLoops::getElement(Value value, Value thread) {
  if (Value same = uniform.lookupOrNull(value))
    return same;
  Location loc = value.getLoc();
  return builder.create<LLVM::LoadOp>(loc, value.getType(),
                                      getArrayAddress(value, thread));
}

Value ThreadLoops::getUniform(Value value) {
  return getElement(value, getConstant(value.getLoc(), 0));
}

void ThreadLoops::buildSegment(ArrayRef<Operation *> ops) {
  if (ops.empty())
    return;
  llvm::SmallPtrSet<Operation *, 16> segment(ops.begin(), ops.end());
  Block *block = ops.front()->getBlock();
  forEachThread(ops.front()->getLoc(), [&](Value thread) {
    IRMapping local(uniform);
    auto provide = [&](Value value) {
      if (!local.contains(value) && !segment.contains(value.getDefiningOp()))
        local.map(value, getElement(value, thread));
    };
    for (Operation *op : ops) {
      if (isa<gpu::ThreadIdOp>(op)) {
        local.map(op->getResult(0),
                  builder.create<arith::IndexCastOp>(
                      op->getLoc(), builder.getIndexType(), thread));
        continue;
      }
      for (Value operand : op->getOperands())
        provide(operand);
      llvm::SetVector<Value> captured;
      getUsedValuesDefinedAbove(op->getRegions(), captured);
      for (Value value : captured)
        provide(value);
      builder.clone(*op, local);
      for (Value result : op->getResults()) {
        bool outlives = llvm::any_of(result.getUsers(), [&](Operation *user) {
          return !segment.contains(block->findAncestorOpInBlock(*user));
        });
        if (outlives)
          builder.create<LLVM::StoreOp>(op->getLoc(), local.lookup(result),
                                        getArrayAddress(result, thread));
      }
    }
  });
}

void ThreadLoops::buildShuffle(gpu::ShuffleOp shuffle) {
  Location loc = shuffle.getLoc();
  Value offset = builder.create<arith::ExtUIOp>(
      loc, builder.getI64Type(), getUniform(shuffle.getOffset()));
  forEachThread(loc, [&](Value thread) {
    // Warps are complete: the partner is a thread of the block.
    Value partner = builder.create<arith::XOrIOp>(loc, thread, offset);
    Value value = getElement(shuffle.getValue(), partner);
    builder.create<LLVM::StoreOp>(
        loc, value, getArrayAddress(shuffle.getShuffleResult(), thread));
  });
}

LogicalResult ThreadLoops::buildUniformRegion(Operation *op, Value blockId) {
  OpBuilder::InsertionGuard guard(builder);
  if (auto condition = dyn_cast<scf::IfOp>(op);
      condition && op->getNumResults() == 0 &&
      condition.getElseRegion().empty()) {
    auto copy = builder.create<scf::IfOp>(op->getLoc(),
                                          getUniform(condition.getCondition()));
    builder.setInsertionPointToStart(&copy.getThenRegion().front());
    return build(condition.getThenRegion().front(), blockId);
  }
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && op->getNumResults() == 0) {
    auto copy = builder.create<scf::ForOp>(
        op->getLoc(), getUniform(loop.getLowerBound()),
        getUniform(loop.getUpperBound()), getUniform(loop.getStep()));
    map(loop.getInductionVar(), copy.getInductionVar());
    builder.setInsertionPointToStart(copy.getBody());
    return build(*loop.getBody(), blockId);
  }
  return op->emitError("threads meet in control flow that is not emulated");
}

LogicalResult ThreadLoops::buildMeeting(Operation *op, Value blockId) {
  // After a loop over all threads a barrier has no effect left.
  if (isa<gpu::BarrierOp>(op))
    return success();
  auto shuffle = dyn_cast<gpu::ShuffleOp>(op);
  if (!shuffle)
    return buildUniformRegion(op, blockId);
  if (shuffle.getMode() != gpu::ShuffleMode::XOR)
    return op->emitError("expected a shuffle by xor");
  buildShuffle(shuffle);
  return success();
}

LogicalResult ThreadLoops::build(Block &block, Value blockId) {
  SmallVector<Operation *> segment;
  auto flush = [&] {
    buildSegment(segment);
    segment.clear();
  };
  for (Operation &op : block.without_terminator()) {
    if (isa<LLVM::AddressOfOp>(op)) {
      assert(uniform.contains(op.getResult(0)) && "memory is mapped before");
    } else if (isa<gpu::BlockIdOp>(op)) {
      map(op.getResult(0), builder.create<arith::IndexCastOp>(
                               op.getLoc(), builder.getIndexType(), blockId));
    } else if (op.hasTrait<OpTrait::ConstantLike>()) {
      builder.clone(op, uniform);
    } else if (isMeeting(&op)) {
      flush();
      if (failed(buildMeeting(&op, blockId)))
        return failure();
    } else {
      segment.push_back(&op);
    }
  }
  flush();
  return success();
}

} // namespace shardc
