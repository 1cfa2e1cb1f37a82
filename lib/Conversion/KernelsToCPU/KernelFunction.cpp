//===- KernelFunction.cpp - One kernel as a function ----------------------===//

#include "shardc/Conversion/KernelsToCPU/KernelFunction.h"
#include "IterationBytes.h"
#include "NestBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace shardc {

LLVM::LLVMFuncOp createKernelFunction(OpBuilder &builder, Location loc,
                                      StringRef name) {
  MLIRContext *context = builder.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          {pointer, pointer, i64, i64});
  auto function = builder.create<LLVM::LLVMFuncOp>(loc, name, type);
  OpBuilder::InsertionGuard guard(builder);
  function.addEntryBlock(builder);
  return function;
}

/// Positions of the kernel's operands and results that `nest` touches.
static SmallVector<int64_t> getTouchedBuffers(KernelOp kernel,
                                              const KernelNest &nest) {
  Block &body = kernel.getBody().front();
  llvm::SmallSetVector<Value, 16> reached;
  auto reach = [&](ArrayRef<Value> values) {
    for (Value value : values)
      reached.insert(value);
  };
  reach(nest.fullResults);
  reach(nest.outerResults);
  size_t numResults = reached.size();
  for (size_t i = 0; i < reached.size(); ++i)
    if (Operation *def = reached[i].getDefiningOp())
      reach(llvm::to_vector(def->getOperands()));
  SmallVector<int64_t> touched;
  for (BlockArgument argument : body.getArguments())
    if (reached.contains(argument))
      touched.push_back(argument.getArgNumber());
  ArrayRef<Value> results = reached.getArrayRef().take_front(numResults);
  for (OpOperand &result : body.getTerminator()->getOpOperands())
    if (llvm::is_contained(results, result.get()))
      touched.push_back(body.getNumArguments() + result.getOperandNumber());
  return touched;
}

SmallVector<KernelPart> buildKernelFunction(KernelOp kernel, MeshOp mesh,
                                            ModuleOp functions, StringRef name,
                                            int64_t mostLanes,
                                            GroupKernel group,
                                            int64_t devices) {
  Location loc = kernel.getLoc();
  auto builder = OpBuilder::atBlockEnd(functions.getBody());
  LLVM::LLVMFuncOp function = createKernelFunction(builder, loc, name);
  Block *entry = &function.getBody().front();
  Type pointer = entry->getArgument(0).getType();
  builder.setInsertionPointToEnd(entry);
  NestEmitter emitter(builder, loc, mesh, entry, entry->getArgument(1),
                      /*bufferAlignment=*/1);
  emitter.memory.setMaskRegisters(mostLanes > baseLanes);

  LoopBuilder &loops = emitter.loops;
  VectorMath &math = loops.math;

  Block &body = kernel.getBody().front();
  Operation *yield = body.getTerminator();
  auto loadPointer = [&](int64_t position) -> Value {
    Value address = buildAddress(builder, loc, entry->getArgument(0), pointer,
                                 loops.constantI64(position));
    return builder.create<LLVM::LoadOp>(loc, pointer, address, 8);
  };
  int64_t position = 0;
  for (int64_t device = 0; device < devices; ++device)
    for (BlockArgument argument : body.getArguments())
      emitter.memory.bind(argument, loadPointer(position++));
  const bool isSum = group.sharedOperand < 0;
  SmallVector<ResultBuffers> buffers(isSum ? 1 : devices);
  for (ResultBuffers &ofDevice : buffers)
    for (Value result : yield->getOperands())
      ofDevice[result].push_back(loadPointer(position++));

  std::vector<NestPlan> plans;
  SmallVector<KernelPart> parts;
  int64_t extent = 0;
  for (KernelNest &nest : getKernelNests(kernel)) {
    SmallVector<int64_t> touched = getTouchedBuffers(kernel, nest);
    NestPlan &plan =
        plans.emplace_back(planNest(std::move(nest), mostLanes, group.devices));
    if (isSum)
      plan.devices = devices;
    else if (devices > 1)
      planSideBySide(plan, devices);
    SmallVector<int64_t> bytes = getBytesPerIteration(kernel, plan, touched);
    parts.push_back(
        {plan.getExtent(), std::move(touched), std::move(bytes), {}});
    extent += plan.getExtent();
  }
  // A nest's share of the iterations [begin, end).
  Value begin = entry->getArgument(2), end = entry->getArgument(3);
  int64_t first = 0;
  for (size_t number = 0; number < plans.size(); ++number) {
    NestPlan &plan = plans[number];
    KernelPart &part = parts[number];
    auto noteAxes = llvm::make_scope_exit([&] {
      part.coordinateAxes = llvm::to_vector(emitter.device.takeAxes());
    });
    if (extent == 1) {
      buildNest(emitter, plan, buffers, {});
      break;
    }
    int64_t count = plan.getExtent();
    auto clip = [&](Value iteration) -> Value {
      Value local = math.sub(iteration, loops.constantI64(first));
      local = math.max(local, loops.constantI64(0));
      return math.min(local, loops.constantI64(count));
    };
    Value low = clip(begin), high = clip(end);
    Value isAny = math.compareInt(arith::CmpIPredicate::slt, low, high);
    // buildNest starts with a fresh scope, which is that of the region.
    loops.buildRegion(isAny, [&] {
      if (count == 1)
        return buildNest(emitter, plan, buffers, {});
      Value perIteration = loops.constantI64(plan.unitsPerIteration);
      Value last =
          math.min(math.mul(high, perIteration), loops.constantI64(plan.units));
      buildNest(emitter, plan, buffers, {math.mul(low, perIteration), last});
    });
    first += count;
  }
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  return parts;
}

} // namespace shardc
