//===- DistinctKernels.cpp - One function for equal kernels ---------------===//

#include "shardc/Conversion/KernelEmitter/DistinctKernels.h"

#include "shardc/Conversion/KernelEmitter/KernelModule.h"
#include "shardc/Conversion/KernelEmitter/NestEmitter.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace shardc {

namespace {

/// Writes the code of a kernel as bytes, the same for kernels that compute the
/// same. Locations and discardable attributes, which tell of the source
/// program, do not count. Types, attributes and names are unique in a context:
/// their addresses stand for them.
class KeyWriter {
public:
  std::string run(KernelOp kernel) {
    addTypes(kernel.getOperandTypes());
    addBlock(kernel.getBody().front());
    return std::move(key);
  }

private:
  void add(size_t number) {
    key.append(reinterpret_cast<const char *>(&number), sizeof(number));
  }
  void add(const void *address) { add(reinterpret_cast<size_t>(address)); }
  void addTypes(TypeRange types) {
    add(types.size());
    for (Type type : types)
      add(type.getAsOpaquePointer());
  }
  void number(ValueRange values) {
    for (Value value : values)
      numbers.try_emplace(value, numbers.size());
  }

  void addBlock(Block &block) {
    addTypes(block.getArgumentTypes());
    number(block.getArguments());
    add(block.getOperations().size());
    for (Operation &op : block) {
      add(op.getName().getAsOpaquePointer());
      add(op.getPropertiesAsAttribute().getAsOpaquePointer());
      add(op.getNumOperands());
      for (Value operand : op.getOperands())
        add(numbers.at(operand));
      addTypes(op.getResultTypes());
      number(op.getResults());
      add(op.getNumRegions());
      for (Region &region : op.getRegions()) {
        add(region.getBlocks().size());
        for (Block &inner : region)
          addBlock(inner);
      }
    }
  }

  std::string key;
  /// Values, numbered in the order of their definitions.
  llvm::DenseMap<Value, size_t> numbers;
};

} // namespace

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
    for (StringRef name :
         {symbolAttrName, groupSymbolAttrName, groupDevicesAttrName,
          groupSharedAttrName, extentAttrName, threadsAttrName, partsAttrName})
      kernel->removeAttr(name);
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
    std::string key = KeyWriter().run(kernel);
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
