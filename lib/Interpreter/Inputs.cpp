//===- Inputs.cpp - Inputs of interpreted programs ------------------------===//

#include "shardc/Interpreter/Inputs.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

using namespace mlir;
using namespace shardc;

namespace {
/// Integers in [low, high].
struct Range {
  int64_t low, high;
};
} // namespace

static Range getRange(func::FuncOp function, unsigned index) {
  Attribute role = getRole(function, index);
  auto type = cast<RankedTensorType>(function.getArgument(index).getType());
  if (auto state = dyn_cast_or_null<StateAttr>(role))
    return state.getParameter() ? Range{0, 3} : Range{3, 3};
  if (isa<IntegerType>(type.getElementType())) {
    auto classes =
        function.getArgAttrOfType<IntegerAttr>(index, labelClassesAttrName);
    return {0, type.getElementType().isInteger(1) || !classes
                   ? 1
                   : std::max<int64_t>(classes.getInt(), 1) - 1};
  }
  if (isa_and_nonnull<ParameterAttr>(role))
    return {-1, 1};
  return {-3, 3};
}

/// SplitMix64 (Steele et al., OOPSLA 2014) at position `counter`.
static uint64_t getBits(uint64_t counter) {
  counter *= 0x9E3779B97F4A7C15u;
  counter = (counter ^ (counter >> 30)) * 0xBF58476D1CE4E5B9u;
  counter = (counter ^ (counter >> 27)) * 0x94D049BB133111EBu;
  return counter ^ (counter >> 31);
}

Tensor shardc::makeInput(func::FuncOp function, unsigned index,
                         InputKind kind) {
  auto type = cast<RankedTensorType>(function.getArgument(index).getType());
  Range range = getRange(function, index);
  bool isInteger =
      kind == InputKind::Integers || isa<IntegerType>(type.getElementType());
  int64_t unit = isInteger ? 1 : 4096;
  uint64_t count = (range.high - range.low) * unit + 1;
  uint64_t stream = getBits(index + 1);
  Tensor tensor(type.getShape(), 0);
  for (auto [linear, element] : llvm::enumerate(tensor.data)) {
    auto step = static_cast<int64_t>(getBits(stream + linear) % count);
    element = static_cast<double>(range.low * unit + step) /
              static_cast<double>(unit);
  }
  return tensor;
}
