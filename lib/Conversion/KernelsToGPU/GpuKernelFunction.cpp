//===- GpuKernelFunction.cpp - One kernel as a gpu.func -------------------===//

#include "GpuKernelFunction.h"

#include "GpuNestBuilder.h"

#include <numeric>

using namespace mlir;

namespace shardc {

/// Parameters of a launch have 4 KiB in all before PTX 8.1.
static constexpr int64_t mostParameters = 4096 / 8;

/// Buffers start at multiples of the widest access; the memory plan aligns to
/// more.
static constexpr int64_t bufferAlignment = 16;

/// Global memory in the address spaces of NVPTX.
static constexpr unsigned globalSpace = 1;

/// Bytes at whose multiples an operand starts, at most `bufferAlignment`. The
/// rows of a microbatch start where those of the one before end.
static int64_t getAlignment(Value operand) {
  auto argument = dyn_cast<BlockArgument>(operand);
  auto loop = dyn_cast<AccumulateOp>(operand.getParentBlock()->getParentOp());
  bool isSlice =
      argument && loop && llvm::is_contained(loop.getSlices(), argument);
  if (!isSlice && !operand.getDefiningOp<RowsOp>())
    return bufferAlignment;
  auto type = cast<RankedTensorType>(operand.getType());
  Type memoryType = getMemoryType(type.getElementType());
  return std::gcd(type.getNumElements() *
                      (memoryType.getIntOrFloatBitWidth() / 8),
                  bufferAlignment);
}

std::string getAlignmentKey(KernelOp kernel) {
  std::string key;
  for (Value operand : kernel.getOperands())
    key += " " + std::to_string(getAlignment(operand));
  return key;
}

static gpu::GPUFuncOp createFunction(OpBuilder &builder, KernelOp kernel,
                                     StringRef name, int64_t threads) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext(), globalSpace);
  // Operands, results, and the context.
  SmallVector<Type> parameters(
      kernel->getNumOperands() + kernel->getNumResults() + 1, pointer);
  auto function = builder.create<gpu::GPUFuncOp>(
      kernel.getLoc(), name, builder.getFunctionType(parameters, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function.setKnownBlockSizeAttr(
      builder.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  return function;
}

FailureOr<GpuGrid> buildGpuKernelFunction(KernelOp kernel, MeshOp mesh,
                                          gpu::GPUModuleOp functions,
                                          StringRef name) {
  int64_t numBuffers = kernel->getNumOperands() + kernel->getNumResults();
  if (numBuffers + 1 > mostParameters)
    return kernel.emitError()
           << "expected at most " << mostParameters - 1
           << " operands and results of a CUDA kernel, found " << numBuffers;
  GpuKernelPlan plan = planGpuKernel(kernel);
  OpBuilder builder = OpBuilder(functions.getBody()->getTerminator());
  gpu::GPUFuncOp function = createFunction(builder, kernel, name, plan.threads);
  Block *entry = &function.getBody().front();
  builder.setInsertionPointToEnd(entry);
  Location loc = kernel.getLoc();
  NestEmitter emitter(builder, loc, mesh, entry, entry->getArguments().back(),
                      bufferAlignment);
  LoopBuilder &loops = emitter.loops;
  GpuBlock block(loops, function, plan.threads);

  Block &body = kernel.getBody().front();
  int64_t position = 0;
  for (BlockArgument argument : body.getArguments()) {
    Value pointer = entry->getArgument(position);
    emitter.memory.bind(argument, pointer);
    emitter.memory.setAlignment(pointer,
                                getAlignment(kernel.getOperand(position)));
    ++position;
  }
  ResultBuffers buffers;
  for (Value result : body.getTerminator()->getOperands())
    buffers[result].push_back(entry->getArgument(position++));

  int64_t first = 0;
  for (const GpuNestPlan &nest : plan.nests) {
    GpuNestBuilder nestBuilder(emitter, block, nest, buffers);
    if (plan.nests.size() == 1) {
      nestBuilder.build(block.getBlock());
      break;
    }
    // The nest's blocks are those from `first` on; others see a number that is
    // negative, or too large.
    Value nestBlock =
        loops.math.sub(block.getBlock(), loops.constantI64(first));
    Value isNest = loops.math.compareInt(arith::CmpIPredicate::ult, nestBlock,
                                         loops.constantI64(nest.blocks));
    loops.buildRegion(isNest, [&] { nestBuilder.build(nestBlock); });
    first += nest.blocks;
  }
  builder.create<gpu::ReturnOp>(loc);
  return GpuGrid{plan.blocks, plan.threads};
}

} // namespace shardc
