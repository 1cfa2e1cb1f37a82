//===- LowerKernels.cpp - Kernels to LLVM dialect functions ---------------===//

#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"

#include "NestBuilder.h"
#include "shardc/Conversion/KernelEmitter/ConvertToLLVM.h"
#include "shardc/Conversion/KernelEmitter/DistinctKernels.h"
#include "shardc/Conversion/KernelEmitter/KernelDialects.h"
#include "shardc/Conversion/KernelsToCPU/KernelFunction.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/DeviceSums.h"
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
  LogicalResult result = buildDistinctKernels(
      module,
      [&](KernelOp kernel, StringRef name, NamedAttrList &attributes) {
        int64_t extent = 0;
        SmallVector<Attribute> parts;
        for (const KernelPart &part :
             buildKernelFunction(kernel, mesh, functions, name, mostLanes)) {
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
        if (int64_t devices = getSummedDevices(kernel); devices > 1) {
          std::string sum = (name + "_sum").str();
          buildKernelFunction(kernel, mesh, functions, sum, mostLanes, devices);
          attributes.set(sumSymbolAttrName, builder.getStringAttr(sum));
          attributes.set(sumDevicesAttrName,
                         builder.getI64IntegerAttr(devices));
        }
        return success();
      },
      [](KernelOp kernel) {
        int64_t devices = getSummedDevices(kernel);
        return devices > 1 ? std::to_string(devices) : "";
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
