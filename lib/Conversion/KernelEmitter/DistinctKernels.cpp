//===- DistinctKernels.cpp - One function for equal kernels ---------------===//

#include "shardc/Conversion/KernelEmitter/DistinctKernels.h"

#include "shardc/Conversion/KernelEmitter/KernelModule.h"
#include "shardc/Conversion/KernelEmitter/NestEmitter.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

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
  // Attributes of the source program do not change the computation.
  KernelOp copy = cast<KernelOp>(kernel->clone());
  copy->setDiscardableAttrs(DictionaryAttr::get(kernel.getContext()));
  copy.walk([](Operation *op) {
    op->setDiscardableAttrs(DictionaryAttr::get(op->getContext()));
  });
  copy.getBody().front().print(os);
  copy->erase();
  return key;
}

/// A short name for the kernel: its most expensive op.
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

FailureOr<MeshOp> prepareKernelModule(ModuleOp module) {
  if (Operation *old = module.lookupSymbol(kernelModuleName))
    old->erase();
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return module.emitError("expected a shardc.mesh");
  auto checkElements = [](Operation *op, TypeRange types) {
    for (Type type : types)
      if (auto tensor = dyn_cast<RankedTensorType>(type);
          tensor && llvm::is_contained(tensor.getShape(), 0)) {
        op->emitOpError("has a tensor without elements, ")
            << type << ", of which no kernel can be made";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  };
  WalkResult result = module.walk([&](KernelOp kernel) {
    if (checkElements(kernel, kernel.getOperandTypes()).wasInterrupted())
      return WalkResult::interrupt();
    return kernel.getBody().walk([&](Operation *op) {
      if (!isa<YieldOp>(op) && failed(checkHasValue(op)))
        return WalkResult::interrupt();
      return checkElements(op, op->getResultTypes());
    });
  });
  if (result.wasInterrupted())
    return failure();
  return *meshes.begin();
}

LogicalResult buildDistinctKernels(ModuleOp module, BuildKernel build,
                                   DistinguishKernel distinguish) {
  llvm::StringMap<NamedAttrList> known;
  WalkResult result = module.walk([&](KernelOp kernel) {
    std::string key = getKey(kernel);
    if (distinguish)
      key += distinguish(kernel);
    auto [it, isNew] = known.try_emplace(key);
    NamedAttrList &attributes = it->second;
    if (isNew) {
      std::string name = getName(kernel, known.size() - 1);
      attributes.set(symbolAttrName,
                     StringAttr::get(module.getContext(), name));
      if (failed(build(kernel, name, attributes)))
        return WalkResult::interrupt();
    }
    for (NamedAttribute attribute : attributes)
      kernel->setAttr(attribute.getName(), attribute.getValue());
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace shardc
