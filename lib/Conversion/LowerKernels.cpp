//===- LowerKernels.cpp - Kernels to LLVM dialect functions ---------------===//

#include "shardc/Conversion/LowerKernels.h"

#include "KernelFunction.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace shardc {

/// The body's text without locations: equal kernels have equal keys.
static std::string getKey(KernelOp kernel) {
  std::string key;
  llvm::raw_string_ostream os(key);
  for (Type type : kernel.getOperandTypes())
    os << type << ',';
  OpPrintingFlags flags;
  flags.useLocalScope();
  // Attributes of the source program do not change what is computed.
  KernelOp copy = cast<KernelOp>(kernel->clone());
  copy->setDiscardableAttrs(DictionaryAttr::get(kernel.getContext()));
  copy.walk([](Operation *op) {
    op->setDiscardableAttrs(DictionaryAttr::get(op->getContext()));
  });
  copy.getBody().front().print(os);
  copy->erase();
  return key;
}

/// A short name for what the kernel does: its heaviest op.
static std::string getName(KernelOp kernel, int64_t number) {
  StringRef what = "map";
  kernel.getBody().walk([&](Operation *op) {
    if (isa<DotGeneralOp>(op))
      what = "matmul";
    else if (isa<ReduceOp>(op) && what == "map")
      what = "reduce";
  });
  return ("shardc_" + what + "_" + Twine(number)).str();
}

LogicalResult lowerKernels(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return module.emitError("expected a shardc.mesh");
  MeshOp mesh = *meshes.begin();
  if (auto old = module.lookupSymbol<ModuleOp>(kernelModuleName))
    old.erase();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto functions = builder.create<ModuleOp>(module.getLoc(), kernelModuleName);
  llvm::StringMap<std::pair<StringAttr, int64_t>> known;
  WalkResult result = module.walk([&](KernelOp kernel) {
    auto [it, isNew] = known.try_emplace(getKey(kernel));
    if (isNew) {
      std::string name = getName(kernel, known.size() - 1);
      int64_t extent = buildKernelFunction(kernel, mesh, functions, name);
      it->second = {builder.getStringAttr(name), extent};
    }
    kernel->setAttr("shardc.symbol", it->second.first);
    kernel->setAttr("shardc.extent",
                    builder.getI64IntegerAttr(it->second.second));
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return convertToLLVMDialect(functions);
}

namespace {

struct LowerKernelsPass
    : PassWrapper<LowerKernelsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerKernelsPass)

  StringRef getArgument() const override { return "shardc-lower-kernels"; }
  StringRef getDescription() const override {
    return "Turn kernels into functions of the LLVM dialect";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, scf::SCFDialect, arith::ArithDialect,
                    math::MathDialect, vector::VectorDialect,
                    cf::ControlFlowDialect>();
  }
  void runOnOperation() override {
    if (failed(lowerKernels(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createLowerKernelsPass() {
  return std::make_unique<LowerKernelsPass>();
}

void registerShardcConversionPasses() { PassRegistration<LowerKernelsPass>(); }

} // namespace shardc
