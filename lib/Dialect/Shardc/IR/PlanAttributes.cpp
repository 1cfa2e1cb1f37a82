//===- PlanAttributes.cpp - Legality of search results --------------------===//

#include "PlanAttributes.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace shardc;

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               StringAttr objective, FloatAttr cost,
                               FloatAttr atLeast, FloatAttr cheapest,
                               IntegerAttr within) {
  if (objective.getValue() != "time" && objective.getValue() != "bytes")
    return emitError() << "unknown objective " << objective
                       << ", expected \"time\" or \"bytes\"";
  for (FloatAttr number : {cost, atLeast, cheapest})
    if (number && !(number.getValueAsDouble() >= 0))
      return emitError() << "expected costs of at least 0, found " << number;
  if (within &&
      !(within.getType().isSignlessInteger(64) && within.getInt() > 0))
    return emitError() << "expected within to be a number of bytes, an i64 "
                       << "above 0, found " << within;
  return success();
}

/// Succeeds iff the mesh of the module around `op` has `axis`.
static LogicalResult
verifyAxisOfModule(StringAttr axis, Operation *op,
                   function_ref<InFlightDiagnostic()> emitError) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module)
    for (MeshOp mesh : module.getOps<MeshOp>())
      return verifyAxis(axis, mesh, emitError);
  return emitError() << "uses axis " << axis
                     << ", but the module has no `shardc.mesh`";
}

LogicalResult shardc::verifyPlanAttribute(Operation *op,
                                          NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  Attribute value = attribute.getValue();
  auto emitError = [&] { return op->emitError("`") << name << "` "; };
  if (name == costAttrName) {
    if (!isa<CostAttr>(value))
      return emitError() << "must be a #shardc.cost attribute";
    return success();
  }
  if (name == startsAttrName) {
    auto starts = dyn_cast<ArrayAttr>(value);
    if (!starts || !llvm::all_of(starts, llvm::IsaPred<StartAttr>))
      return emitError() << "must be a list of #shardc.start attributes";
    for (auto start : starts.getAsRange<StartAttr>())
      for (StringAttr axis : start.getAxes())
        if (failed(verifyAxisOfModule(axis, op, emitError)))
          return failure();
    return success();
  }
  auto prices = dyn_cast<DictionaryAttr>(value);
  if (!prices || !isa<ModuleOp>(op))
    return emitError() << "must be a dictionary on the module";
  for (NamedAttribute price : prices) {
    auto number = dyn_cast<FloatAttr>(price.getValue());
    if (!number || !(number.getValueAsDouble() >= 0))
      return emitError() << "of axis " << price.getName()
                         << " must be a number of at least 0, found "
                         << price.getValue();
    if (failed(verifyAxisOfModule(price.getName(), op, emitError)))
      return failure();
  }
  return success();
}
