//===- CallOps.cpp - Calls, composites and ops without effect -------------===//

#include "Lowering.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Permutations.h"

using namespace mlir;
using namespace shardc;

static LogicalResult lowerCall(Lowering &lowering, Operation *op) {
  return lowering.runCall(op, op->getAttrOfType<FlatSymbolRefAttr>("callee"));
}

template <typename Op>
static Value build(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  return lowering.getBuilder().create<Op>(op->getLoc(), x.getType(), x);
}

static LogicalResult lowerPermuteRows(Lowering &lowering, Operation *op) {
  auto attributes = op->getAttrOfType<DictionaryAttr>("composite_attributes");
  auto get = [&](StringRef name) {
    return attributes ? attributes.get(name) : Attribute();
  };
  auto dim = dyn_cast_or_null<IntegerAttr>(get("dim"));
  auto list = dyn_cast_or_null<ArrayAttr>(get("sources"));
  SmallVector<int64_t> sources;
  if (list)
    for (auto source : list.getAsRange<Attribute>())
      sources.push_back(
          isa<IntegerAttr>(source) ? cast<IntegerAttr>(source).getInt() : -1);
  Value x = lowering.get(op, 0);
  auto type = cast<RankedTensorType>(x.getType());
  if (!dim || dim.getInt() < 0 || dim.getInt() >= type.getRank() ||
      !isPermutation(sources, type.getDimSize(dim.getInt())))
    return emitError(op->getLoc())
           << "shardc.permute_rows must have a dimension and a permutation of "
              "its rows";
  return lowering.set(op, lowering.getBuilder().create<PermuteRowsOp>(
                              op->getLoc(), type, x, dim.getInt(), sources));
}

/// The exporter writes as composites what has a gradient of its own, and moves
/// between devices.
static LogicalResult lowerComposite(Lowering &lowering, Operation *op) {
  static const struct {
    StringLiteral name;
    Value (*build)(Lowering &, Operation *);
  } composites[] = {{"shardc.relu", build<ReluOp>},
                    {"shardc.sigmoid", build<SigmoidOp>},
                    {"shardc.stop_gradient", build<StopGradientOp>}};
  auto name = op->getAttrOfType<StringAttr>("name");
  for (const auto &each : composites)
    if (name && name.getValue() == each.name && op->getNumOperands() == 1)
      return lowering.set(op, each.build(lowering, op));
  if (name && name.getValue() == "shardc.permute_rows" &&
      op->getNumOperands() == 1)
    return lowerPermuteRows(lowering, op);
  return lowering.runCall(
      op, op->getAttrOfType<FlatSymbolRefAttr>("decomposition"));
}

static LogicalResult forward(Lowering &lowering, Operation *op) {
  if (op->getOperandTypes() != op->getResultTypes())
    return emitError(op->getLoc())
           << op->getName()
           << " must have results of the types of its operands";
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults()))
    lowering.set(result, lowering.get(operand));
  return success();
}

static LogicalResult lowerConstraint(Lowering &lowering, Operation *op) {
  FailureOr<ShardingAttr> sharding = lowering.getMeshes().importSharding(
      op->getAttr("sharding"), [&] { return emitError(op->getLoc()); });
  if (failed(sharding))
    return failure();
  Value x = lowering.get(op, 0);
  auto constraint = lowering.getBuilder().create<ShardingConstraintOp>(
      op->getLoc(), x.getType(), x, *sharding, ArrayAttr());
  // The exporter writes shard_map in global form: a constraint says where
  // shards come from, or which collective has them as its result.
  if (std::optional<StringRef> cause =
          findScope(op->getLoc(), "shardc.shard_map/"))
    constraint->setAttr(manualAttrName,
                        StringAttr::get(constraint.getContext(), *cause));
  return lowering.set(op, constraint);
}

ArrayRef<OpLowering> shardc::getCallLowerings() {
  static const OpLowering table[] = {
      {"func.call", lowerCall, -1},
      {"stablehlo.composite", lowerComposite, -1},
      {"stablehlo.optimization_barrier", forward, -1},
      {"sdy.sharding_constraint", lowerConstraint, 1},
  };
  return table;
}
