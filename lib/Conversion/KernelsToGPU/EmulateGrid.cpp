//===- EmulateGrid.cpp - GPU kernels as loops on the CPU ------------------===//

#include "shardc/Conversion/KernelsToGPU/EmulateGrid.h"

#include "ThreadLoops.h"
#include "shardc/Conversion/KernelEmitter/ConvertToLLVM.h"
#include "shardc/Conversion/KernelEmitter/KernelDialects.h"
#include "shardc/Conversion/KernelsToCPU/KernelFunction.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Conversion/KernelsToGPU/LowerKernelsToGpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-emulate-grid"

using namespace mlir;

namespace shardc {

/// Replaces shared memory of blocks by buffers of their own, allocated at
/// `builder`'s place. The CPU has one address space; LLVM lets pointers keep
/// theirs.
static void mapSharedMemory(gpu::GPUFuncOp function, OpBuilder &builder,
                            ThreadLoops &loops) {
  function.walk([&](LLVM::AddressOfOp address) {
    Location loc = address.getLoc();
    auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
        address, address.getGlobalNameAttr());
    Value replacement;
    if (global.getConstant()) {
      replacement = builder.clone(*address)->getResult(0);
    } else {
      Value one =
          builder.create<LLVM::ConstantOp>(loc, builder.getI64IntegerAttr(1));
      Value memory = builder.create<LLVM::AllocaOp>(
          loc, LLVM::LLVMPointerType::get(builder.getContext()),
          global.getGlobalType(), one, /*alignment=*/16);
      replacement =
          builder.create<LLVM::AddrSpaceCastOp>(loc, address.getType(), memory);
    }
    loops.map(address.getResult(), replacement);
  });
}

/// Ends the program at an access whose address is not aligned as the op says,
/// as a GPU does.
static void checkAlignments(gpu::GPUFuncOp function) {
  function.walk([](Operation *op) {
    Value address;
    uint64_t alignment = 1;
    if (auto load = dyn_cast<LLVM::LoadOp>(op)) {
      address = load.getAddr();
      alignment = load.getAlignment().value_or(1);
    } else if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      address = store.getAddr();
      alignment = store.getAlignment().value_or(1);
    } else {
      return;
    }
    OpBuilder builder(op);
    Location loc = op->getLoc();
    auto getConstant = [&](int64_t value) -> Value {
      return builder.create<arith::ConstantOp>(
          loc, builder.getI64IntegerAttr(value));
    };
    Value number =
        builder.create<LLVM::PtrToIntOp>(loc, builder.getI64Type(), address);
    Value rest =
        builder.create<arith::AndIOp>(loc, number, getConstant(alignment - 1));
    Value isOff = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne,
                                                rest, getConstant(0));
    auto ifOp = builder.create<scf::IfOp>(loc, isOff);
    builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
    builder.create<LLVM::Trap>(loc);
  });
}

/// Builds the function for `kernel` with the interface of `lowerKernels`.
static LogicalResult emulateFunction(gpu::GPUFuncOp kernel,
                                     ModuleOp functions) {
  Location loc = kernel.getLoc();
  auto builder = OpBuilder::atBlockEnd(functions.getBody());
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  LLVM::LLVMFuncOp function =
      createKernelFunction(builder, loc, kernel.getName());
  Block *entry = &function.getBody().front();
  builder.setInsertionPointToEnd(entry);
  ThreadLoops loops(builder, entry, kernel.getKnownBlockSize()->front());
  ArrayRef<BlockArgument> parameters = kernel.getBody().getArguments();
  for (auto [position, parameter] : llvm::enumerate(parameters)) {
    Value address = entry->getArgument(1);
    if (position + 1 < parameters.size()) {
      Value place = builder.create<LLVM::GEPOp>(
          loc, pointer, pointer, entry->getArgument(0),
          ArrayRef<LLVM::GEPArg>{int32_t(position)});
      address = builder.create<LLVM::LoadOp>(loc, pointer, place);
    }
    loops.map(parameter, builder.create<LLVM::AddrSpaceCastOp>(
                             loc, parameter.getType(), address));
  }
  mapSharedMemory(kernel, builder, loops);
  Value one =
      builder.create<arith::ConstantOp>(loc, builder.getI64IntegerAttr(1));
  auto blocks = builder.create<scf::ForOp>(loc, entry->getArgument(2),
                                           entry->getArgument(3), one);
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
  builder.setInsertionPointToStart(blocks.getBody());
  return loops.build(kernel.getBody().front(), blocks.getInductionVar());
}

LogicalResult lowerKernelsToEmulation(ModuleOp module) {
  FailureOr<gpu::GPUModuleOp> grids = lowerKernelsToGpu(module, "emulated");
  if (failed(grids))
    return failure();
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  auto functions = ModuleOp::create(module.getLoc(), kernelModuleName);
  builder.insert(functions);
  for (Operation &op : grids->getOps()) {
    builder.setInsertionPointToStart(functions.getBody());
    if (auto global = dyn_cast<LLVM::GlobalOp>(op);
        global && global.getConstant())
      builder.clone(op);
    if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op)) {
      LLVM_DEBUG(llvm::dbgs() << "emulate " << kernel.getName() << '\n');
      checkAlignments(kernel);
      if (failed(emulateFunction(kernel, functions)))
        return failure();
    }
  }
  grids->erase();
  // The iterations are the blocks; their threads are inside the functions.
  module.walk([](KernelOp kernel) { kernel->removeAttr(threadsAttrName); });
  return convertToLLVMDialect(functions);
}

namespace {

struct EmulateGridPass : PassWrapper<EmulateGridPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmulateGridPass)

  StringRef getArgument() const override { return "shardc-emulate-grid"; }
  StringRef getDescription() const override {
    return "Turn kernels into functions for the CPU that do a grid's work";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    insertKernelDialects(registry);
    registry.insert<gpu::GPUDialect>();
  }
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               ModulePhase::Codegen)))
      return signalPassFailure();
    if (failed(lowerKernelsToEmulation(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createEmulateGridPass() {
  return std::make_unique<EmulateGridPass>();
}

} // namespace shardc
