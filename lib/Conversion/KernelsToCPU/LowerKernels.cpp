//===- LowerKernels.cpp - Kernels to LLVM dialect functions ---------------===//

#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"

#include "NestBuilder.h"
#include "shardc/Conversion/KernelEmitter/ConvertToLLVM.h"
#include "shardc/Conversion/KernelEmitter/DistinctKernels.h"
#include "shardc/Conversion/KernelEmitter/KernelDialects.h"
#include "shardc/Conversion/KernelsToCPU/KernelFunction.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/GroupKernels.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-lower-kernels"

using namespace mlir;

namespace shardc {

/// Builds the functions of the module's kernels, with vectors of at most
/// `mostLanes` lanes.
static LogicalResult buildFunctions(ModuleOp module, MeshOp mesh,
                                    ModuleOp functions, int64_t mostLanes) {
  Builder builder(module.getContext());
  llvm::DenseMap<func::FuncOp, std::unique_ptr<DeviceCopies>> copies;
  auto getGroup = [&](KernelOp kernel) {
    auto function = kernel->getParentOfType<func::FuncOp>();
    std::unique_ptr<DeviceCopies> &ofFunction = copies[function];
    if (!ofFunction)
      ofFunction = std::make_unique<DeviceCopies>(function);
    return getGroupKernel(kernel, *ofFunction);
  };
  LogicalResult result = buildDistinctKernels(
      module,
      [&](KernelOp kernel, StringRef name, NamedAttrList &attributes) {
        const GroupKernel group = getGroup(kernel);
        int64_t extent = 0;
        SmallVector<Attribute> parts;
        for (const KernelPart &part :
             buildKernelFunction(kernel, mesh, functions, name, mostLanes,
                                 group, /*devices=*/1)) {
          extent += part.extent;
          parts.push_back(builder.getDictionaryAttr(
              {builder.getNamedAttr(
                   "axes", builder.getDenseI64ArrayAttr(part.coordinateAxes)),
               builder.getNamedAttr("buffers",
                                    builder.getDenseI64ArrayAttr(part.buffers)),
               builder.getNamedAttr("bytes", builder.getDenseI64ArrayAttr(
                                                 part.bytesPerIteration)),
               builder.getNamedAttr("extent",
                                    builder.getI64IntegerAttr(part.extent))}));
        }
        LLVM_DEBUG(llvm::dbgs()
                   << name << ": " << describeOp(kernel) << ", " << parts.size()
                   << " parts, extent " << extent << '\n');
        attributes.set(extentAttrName,
                       builder.getI64IntegerAttr(std::max<int64_t>(extent, 1)));
        if (extent > 0)
          attributes.set(partsAttrName, builder.getArrayAttr(parts));
        if (group.devices > 1) {
          std::string symbol =
              (name + (group.addsUp() ? "_sum" : "_group")).str();
          buildKernelFunction(kernel, mesh, functions, symbol, mostLanes, group,
                              group.devices);
          attributes.set(groupSymbolAttrName, builder.getStringAttr(symbol));
          attributes.set(groupDevicesAttrName,
                         builder.getI64IntegerAttr(group.devices));
          if (!group.addsUp())
            attributes.set(groupSharedAttrName,
                           builder.getI64IntegerAttr(group.sharedOperand));
        }
        return success();
      },
      [&](KernelOp kernel) -> std::string {
        GroupKernel group = getGroup(kernel);
        if (group.devices == 1)
          return "";
        return std::to_string(group.devices) + (group.addsUp() ? " sum" : "");
      });
  if (failed(result))
    return failure();
  return convertToLLVMDialect(functions);
}

LogicalResult lowerKernels(ModuleOp module) {
  FailureOr<MeshOp> mesh = prepareKernelModule(module);
  if (failed(mesh))
    return failure();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto functions = builder.create<ModuleOp>(module.getLoc(), kernelModuleName);
  return buildFunctions(module, *mesh, functions, baseLanes);
}

OwningOpRef<ModuleOp> lowerWideKernels(ModuleOp module) {
  OwningOpRef<ModuleOp> functions =
      ModuleOp::create(module.getLoc(), kernelModuleName);
  MeshOp mesh = *module.getOps<MeshOp>().begin();
  llvm::SmallVector<std::pair<KernelOp, DictionaryAttr>> narrow;
  module.walk([&](KernelOp kernel) {
    narrow.push_back({kernel, kernel->getAttrDictionary()});
  });
  if (failed(buildFunctions(module, mesh, *functions, 2 * baseLanes)))
    return nullptr;
  for (auto [kernel, attributes] : narrow)
    if (kernel->getAttrDictionary() != attributes) {
      kernel.emitError("wider vectors divide the kernel differently: expected ")
          << attributes << ", found " << kernel->getAttrDictionary();
      return nullptr;
    }
  return functions;
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
    insertKernelDialects(registry);
  }
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               ModulePhase::Codegen)))
      return signalPassFailure();
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
