//===- LowerKernelsToGpu.cpp - Kernels to GPU functions -------------------===//

#include "shardc/Conversion/KernelsToGPU/LowerKernelsToGpu.h"

#include "GpuKernelFunction.h"
#include "shardc/Conversion/KernelEmitter/DistinctKernels.h"
#include "shardc/Conversion/KernelEmitter/KernelDialects.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Conversion/KernelsToGPU/EmulateGrid.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-lower-kernels-to-gpu"

using namespace mlir;

namespace shardc {

FailureOr<gpu::GPUModuleOp> lowerKernelsToGpu(ModuleOp module, StringRef chip) {
  FailureOr<MeshOp> mesh = prepareKernelModule(module);
  if (failed(mesh))
    return failure();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto functions =
      builder.create<gpu::GPUModuleOp>(module.getLoc(), kernelModuleName);
  functions->setAttr(chipAttrName, builder.getStringAttr(chip));
  LogicalResult result = buildDistinctKernels(
      module,
      [&](KernelOp kernel, StringRef name,
          NamedAttrList &attributes) -> LogicalResult {
        FailureOr<GpuGrid> grid =
            buildGpuKernelFunction(kernel, *mesh, functions, name);
        if (failed(grid))
          return failure();
        LLVM_DEBUG(llvm::dbgs()
                   << name << ": " << describeOp(kernel) << ", " << grid->blocks
                   << " blocks of " << grid->threads << " threads\n");
        attributes.set(extentAttrName, builder.getI64IntegerAttr(grid->blocks));
        attributes.set(threadsAttrName,
                       builder.getI64IntegerAttr(grid->threads));
        return success();
      },
      getAlignmentKey);
  if (failed(result))
    return failure();
  return functions;
}

namespace {

class LowerKernelsToGpuPass
    : public PassWrapper<LowerKernelsToGpuPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerKernelsToGpuPass)

  explicit LowerKernelsToGpuPass(const std::string &chosen) {
    if (!chosen.empty())
      chip = chosen;
  }
  LowerKernelsToGpuPass(const LowerKernelsToGpuPass &other)
      : PassWrapper(other) {}

  StringRef getArgument() const override {
    return "shardc-lower-kernels-to-gpu";
  }
  StringRef getDescription() const override {
    return "Turn kernels into functions that a grid of threads runs";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    insertKernelDialects(registry);
    registry.insert<gpu::GPUDialect>();
  }
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               ModulePhase::Codegen)))
      return signalPassFailure();
    if (failed(lowerKernelsToGpu(getOperation(), chip)))
      signalPassFailure();
  }

private:
  Option<std::string> chip{*this, "chip", llvm::cl::init("sm_80"),
                           llvm::cl::desc("The GPU's architecture")};
};

struct ConvertToNVVMPass
    : PassWrapper<ConvertToNVVMPass, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertToNVVMPass)

  StringRef getArgument() const override { return "shardc-convert-to-nvvm"; }
  StringRef getDescription() const override {
    return "Turn functions of a grid into the NVVM dialect";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    insertKernelDialects(registry);
    registry.insert<NVVM::NVVMDialect>();
  }
  void runOnOperation() override {
    if (failed(convertToNVVMDialect(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createLowerKernelsToGpuPass(std::string chip) {
  return std::make_unique<LowerKernelsToGpuPass>(chip);
}

std::unique_ptr<Pass> createConvertToNVVMPass() {
  return std::make_unique<ConvertToNVVMPass>();
}

void registerShardcGpuConversionPasses() {
  PassRegistration<LowerKernelsToGpuPass>(
      [] { return createLowerKernelsToGpuPass(); });
  PassRegistration<ConvertToNVVMPass>();
  registerPass([] { return createEmulateGridPass(); });
}

} // namespace shardc
