//===- MoveProvenance.cpp - Provenance of reshards ------------------------===//

#include "MoveProvenance.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

using namespace mlir;
using namespace shardc;

/// The axes that a move from `from` to `to` adds, removes or displaces. In each
/// dimension these are the axes behind the common prefix of the two lists.
static AxisSet getMoved(const Layout &from, const Layout &to) {
  AxisSet moved = from.unreduced ^ to.unreduced;
  for (auto [before, after] : llvm::zip_equal(from.dims, to.dims)) {
    size_t same = 0;
    while (same < before.size() && same < after.size() &&
           before[same] == after[same])
      ++same;
    for (const AxisList *list : {&before, &after})
      for (int axis : ArrayRef(*list).drop_front(same))
        if (!isGap(axis))
          moved |= axisBit(axis);
  }
  return moved;
}

static PartAttr getPart(Operation *op) {
  return op->getAttrOfType<PartAttr>(partAttrName);
}

/// The name of the user's op that became `op`.
static std::string getUserOp(Operation *op) {
  if (SourceAttr source = getSource(op->getLoc()))
    return source.getOp().str();
  PartAttr part = getPart(op);
  if (part && part.getValue() == Part::Update)
    return "update";
  return op->getName().stripDialect().str();
}

MoveProvenance::MoveProvenance(func::FuncOp function, const MeshAxes &mesh,
                               FlatSymbolRefAttr meshName,
                               const ReshardCauses &names)
    : function(function), mesh(mesh), meshName(meshName), names(names),
      origins(function, mesh), builder(function.getContext()) {}

Location MoveProvenance::record(Location loc, Value value, const Layout &from,
                                const Layout &to, OpOperand &use) {
  AxisSet moved = getMoved(from, to);
  return addMetadata(loc, MoveAttr::get(builder.getContext(), count++,
                                        getName(value),
                                        cast<RankedTensorType>(value.getType()),
                                        getSharding(from, mesh, meshName),
                                        getSharding(to, mesh, meshName),
                                        getProducer(value, from, moved),
                                        getConsumer(use, moved)));
}

StringAttr MoveProvenance::getName(Value value) {
  Value origin = getWrittenValue(value);
  for (Value known : {value, origin})
    if (std::optional<std::string> name = names.getName(known))
      return builder.getStringAttr(*name);
  Operation *op = origin.getDefiningOp();
  PartAttr part = getPart(op);
  StringRef what = !part || part.getValue() == Part::Forward ? "result of "
                   : part.getValue() == Part::Backward       ? "backward of "
                                                             : "";
  return builder.getStringAttr(what + getUserOp(op) + " at " +
                               getSourceLine(op->getLoc()));
}

SmallVector<Attribute> MoveProvenance::getArguments(Operation *op) {
  SmallVector<Attribute> found;
  for (Value operand : op->getOperands())
    if (auto argument = dyn_cast<BlockArgument>(getWrittenValue(operand)))
      found.push_back(builder.getStringAttr(
          getRoleName(function, argument.getArgNumber())));
  return found;
}

MoveEndAttr MoveProvenance::getEnd(StringRef op, PartAttr part, Location at,
                                   ArrayRef<Attribute> arguments,
                                   ArrayRef<Attribute> origins) {
  return MoveEndAttr::get(builder.getContext(), builder.getStringAttr(op), part,
                          at, builder.getArrayAttr(arguments),
                          builder.getArrayAttr(origins));
}

MoveEndAttr MoveProvenance::getProducer(Value value, const Layout &from,
                                        AxisSet moved) {
  AxisSet lost = moved & (from.getAxes() | from.unreduced);
  SmallVector<Attribute> found;
  Value origin = getWrittenValue(value);
  Operation *op = origin.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(origin);
    for (int axis : mesh.getList(lost))
      found.push_back(origins.find(argument, axis));
    SourceAttr source = getSource(argument.getLoc());
    return getEnd(source ? source.getOp().getValue() : "argument", PartAttr(),
                  argument.getLoc(), {getName(origin)}, found);
  }
  for (int axis : mesh.getList(lost))
    found.push_back(origins.find(op, axis));
  return getEnd(getUserOp(op), getPart(op), op->getLoc(), getArguments(op),
                found);
}

MoveEndAttr MoveProvenance::getConsumer(OpOperand &use, AxisSet moved) {
  Operation *op = use.getOwner();
  // The consumer of a slice of a loop is the first op of its body that uses it.
  if (auto loop = dyn_cast<AccumulateOp>(op))
    if (BlockArgument slice = loop.getSlices()[use.getOperandNumber()];
        !slice.use_empty())
      op = *llvm::min_element(slice.getUsers(),
                              [](Operation *lhs, Operation *rhs) {
                                return lhs->isBeforeInBlock(rhs);
                              });
  SmallVector<Attribute> found;
  if (isa<func::ReturnOp>(op)) {
    auto name = function.getResultAttrOfType<StringAttr>(use.getOperandNumber(),
                                                         resultAttrName);
    for (BlockArgument argument : function.getArguments()) {
      if (!name || getRoleName(function, argument.getArgNumber()) != name)
        continue;
      auto sharding = function.getArgAttrOfType<ShardingAttr>(
          argument.getArgNumber(), shardingAttrName);
      for (int axis : mesh.getList(moved & getLayout(sharding, mesh).getAxes()))
        found.push_back(origins.find(argument, axis));
      return getEnd("rest", PartAttr(), argument.getLoc(), {name}, found);
    }
    return getEnd("rest", PartAttr(), op->getLoc(), {}, {});
  }
  StrategyAttr strategy = getStrategyAttr(op);
  for (int axis : mesh.getList(moved))
    if (strategy &&
        llvm::any_of(strategy.getFactors(), [&](DimShardingAttr factor) {
          return llvm::any_of(factor.getAxes(), [&](StringAttr it) {
            return it == mesh.getName(axis);
          });
        }))
      found.push_back(origins.find(op, axis));
  return getEnd(getUserOp(op), getPart(op), op->getLoc(), getArguments(op),
                found);
}
