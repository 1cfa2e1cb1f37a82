//===- SignlessIntegers.cpp - Unsigned integers as bits -------------------===//

#include "SignlessIntegers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

static constexpr StringLiteral unsignedAttrName = "shardc.unsigned";

static IntegerType getUnsigned(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto element =
      tensor ? dyn_cast<IntegerType>(tensor.getElementType()) : IntegerType();
  bool isKnown = element && element.isUnsigned() &&
                 (element.getWidth() == 32 || element.getWidth() == 64);
  return isKnown ? element : IntegerType();
}

static Type toSignless(Type type) {
  IntegerType element = getUnsigned(type);
  if (!element)
    return type;
  return cast<RankedTensorType>(type).clone(
      IntegerType::get(type.getContext(), element.getWidth()));
}

static bool dependsOnSign(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), getUnsigned))
    return true;
  return op->getName().getStringRef() == "stablehlo.convert" &&
         llvm::any_of(op->getResultTypes(), getUnsigned) &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && isa<FloatType>(tensor.getElementType());
         });
}

bool shardc::isUnsigned(Operation *op) { return op->hasAttr(unsignedAttrName); }

void shardc::makeSignless(ModuleOp source) {
  auto mark = UnitAttr::get(source.getContext());
  source.walk([&](Operation *op) {
    if (dependsOnSign(op))
      op->setAttr(unsignedAttrName, mark);
  });
  auto convert = [](TypeRange types) {
    return llvm::to_vector(llvm::map_range(types, toSignless));
  };
  source.walk([&](Operation *op) {
    for (OpResult result : op->getResults())
      result.setType(toSignless(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(toSignless(argument.getType()));
    if (auto function = dyn_cast<func::FuncOp>(op))
      function.setType(FunctionType::get(source.getContext(),
                                         convert(function.getArgumentTypes()),
                                         convert(function.getResultTypes())));
    if (auto value = op->getAttrOfType<DenseElementsAttr>("value"))
      if (IntegerType element = getUnsigned(value.getType()))
        op->setAttr("value", value.bitcast(IntegerType::get(
                                 source.getContext(), element.getWidth())));
  });
}
