//===- Provenance.cpp - Provenance of axes --------------------------------===//

#include "Provenance.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

using namespace mlir;
using namespace shardc;

/// The maximal number of ops on a path that an origin names: those nearest to
/// the move.
constexpr size_t maxThrough = 4;

static bool isAnnotated(ArrayRef<DimShardingAttr> dims, StringRef name) {
  return llvm::any_of(dims, [&](DimShardingAttr dim) {
    return llvm::any_of(dim.getAxes(),
                        [&](StringAttr it) { return it == name; });
  });
}

/// The axes in the strategy of `op`: of its factors and of partial sums.
static AxisSet getAssignedAxes(Operation *op, const MeshAxes &mesh) {
  StrategyAttr strategy = getStrategyAttr(op);
  if (!strategy)
    return 0;
  AxisSet axes = 0;
  auto add = [&](ArrayRef<StringAttr> names) {
    for (StringAttr name : names)
      if (int axis = mesh.find(name); axis >= 0)
        axes |= axisBit(axis);
  };
  for (DimShardingAttr factor : strategy.getFactors())
    add(factor.getAxes());
  add(strategy.getUnreduced());
  add(strategy.getUnreducedRhs());
  return axes;
}

Value shardc::getWrittenValue(Value value) {
  while (true) {
    if (auto reshard = value.getDefiningOp<ReshardOp>()) {
      value = reshard.getOperand();
      continue;
    }
    if (auto loop = value.getDefiningOp<AccumulateOp>()) {
      value =
          loop.getYield().getOperand(cast<OpResult>(value).getResultNumber());
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(value);
    auto loop = argument
                    ? dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp())
                    : AccumulateOp();
    if (!loop)
      return value;
    value = loop.getOperand(argument.getArgNumber());
  }
}

/// The ops that compute the operands of `op`.
static SmallVector<Operation *> getProducers(Operation *op) {
  SmallVector<Operation *> producers;
  for (Value operand : op->getOperands())
    if (Operation *producer = getWrittenValue(operand).getDefiningOp())
      producers.push_back(producer);
  return producers;
}

/// Appends the ops that use `value`, directly or through loops and reshards.
static void addUsers(Value value, SmallVectorImpl<Operation *> &users) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    unsigned index = use.getOperandNumber();
    if (auto loop = dyn_cast<AccumulateOp>(user))
      addUsers(loop.getSlices()[index], users);
    else if (isa<YieldOp>(user))
      addUsers(user->getParentOp()->getResult(index), users);
    else if (isa<ReshardOp>(user))
      addUsers(user->getResult(0), users);
    else if (!isa<func::ReturnOp>(user))
      users.push_back(user);
  }
}

/// The ops that use the results of `op`, directly or through loops and
/// reshards.
static SmallVector<Operation *> getUsers(Operation *op) {
  SmallVector<Operation *> users;
  for (Value result : op->getResults())
    addUsers(result, users);
  return users;
}

Provenance::Provenance(func::FuncOp function, const MeshAxes &mesh)
    : function(function), mesh(mesh) {
  for (BlockArgument argument : function.getArguments()) {
    StringRef name = getRoleName(function, argument.getArgNumber());
    Source source{argument.getLoc(), {}};
    addUsers(argument, source.ops);
    sources.try_emplace(
        name.empty() ? "argument " + std::to_string(argument.getArgNumber())
                     : name.str(),
        std::move(source));
  }
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    order[op] = order.size();
    if (AxisSet axes = getAssignedAxes(op, mesh))
      axesOf[op] = axes;
    if (isa<ShardingConstraintOp>(op))
      sources.try_emplace("constraint at " + getSourceLine(op->getLoc()),
                          Source{op->getLoc(), {op}});
  });
}

StringRef Provenance::getSourceName(Operation *op, int axis) const {
  auto origins = op->getAttrOfType<ArrayAttr>(originAttrName);
  if (!origins)
    return {};
  for (auto origin : origins.getAsRange<StringAttr>()) {
    auto [name, source] = origin.getValue().split(": ");
    if (name == mesh.getName(axis))
      return source;
  }
  return {};
}

OriginAttr Provenance::find(Operation *op, int axis) {
  if (isa<ShardingConstraintOp>(op))
    return makeOrigin(axis, "constraint at " + getSourceLine(op->getLoc()), op);
  // Breadth-first search upwards along ops that hold the axis: an op that works
  // on partial sums has the axis from one of them.
  Operation *end = op;
  llvm::DenseSet<Operation *> seen;
  llvm::DenseSet<Operation *> &withoutSource = sourceless[axis];
  SmallVector<Operation *> queue = {op};
  for (size_t next = 0; next < queue.size(); ++next) {
    if (StringRef name = getSourceName(queue[next], axis); !name.empty())
      return makeOrigin(axis, name, end);
    for (Operation *producer : getProducers(queue[next]))
      if (hasAxis(producer, axis) && !withoutSource.contains(producer) &&
          seen.insert(producer).second)
        queue.push_back(producer);
  }
  withoutSource.insert(seen.begin(), seen.end());
  return makeOrigin(axis, "", op);
}

OriginAttr Provenance::find(BlockArgument argument, int axis) {
  SourceAttr source = getSource(argument.getLoc());
  StringRef name = getRoleName(function, argument.getArgNumber());
  if (source && source.getSharding() &&
      isAnnotated(source.getSharding().getDims(), mesh.getName(axis)))
    return OriginAttr::get(
        function.getContext(),
        StringAttr::get(function.getContext(), mesh.getName(axis)),
        StringAttr::get(function.getContext(), name),
        getFileLocation(argument.getLoc()), ArrayAttr());
  // The axis came to the argument by propagation from one of its users.
  Operation *first = nullptr;
  SmallVector<Operation *> users;
  addUsers(argument, users);
  for (Operation *user : users)
    if (!getSourceName(user, axis).empty() &&
        (!first || order.lookup(user) < order.lookup(first)))
      first = user;
  return makeOrigin(axis, first ? getSourceName(first, axis) : "", first);
}

OriginAttr Provenance::makeOrigin(int axis, StringRef name, Operation *end) {
  MLIRContext *context = function.getContext();
  auto axisName = StringAttr::get(context, mesh.getName(axis));
  auto it = sources.find(name);
  if (it == sources.end())
    return OriginAttr::get(context, axisName, StringAttr::get(context, name),
                           LocationAttr(), ArrayAttr());
  return OriginAttr::get(context, axisName, StringAttr::get(context, name),
                         getFileLocation(it->second.at),
                         end ? getThrough(axis, name, end) : ArrayAttr());
}

const Provenance::Parents &Provenance::getParents(int axis, StringRef name,
                                                  Operation *end) {
  auto [it, isNew] = searches.try_emplace({axis, name.str()});
  Search &search = it->second;
  auto visit = [&](Operation *op, Operation *parent) {
    if (hasAxis(op, axis) && search.parents.try_emplace(op, parent).second)
      search.queue.push_back(op);
  };
  auto byOrder = [&](Operation *lhs, Operation *rhs) {
    return order.lookup(lhs) < order.lookup(rhs);
  };
  if (isNew) {
    SmallVector<Operation *> first = sources.find(name)->second.ops;
    llvm::sort(first, byOrder);
    for (Operation *op : first)
      visit(op, nullptr);
  }
  // Breadth-first search along ops that hold the axis, both to producers and to
  // users. It stops at `end` and continues from there in later calls.
  while (!search.parents.contains(end) && search.next < search.queue.size()) {
    Operation *op = search.queue[search.next++];
    SmallVector<Operation *> others = getProducers(op);
    others.append(getUsers(op));
    llvm::sort(others, byOrder);
    // A path through the update would connect unrelated parameters.
    for (Operation *other : others)
      if (!isPart(op, Part::Update) || isPart(other, Part::Update))
        visit(other, op);
  }
  return search.parents;
}

ArrayAttr Provenance::getThrough(int axis, StringRef name, Operation *end) {
  // The update has the sharding of its parameter.
  if (isPart(end, Part::Update))
    return {};
  const Parents &parents = getParents(axis, name, end);
  std::string first = getSourceLine(sources.find(name)->second.at);
  // From the end to the source. Adjacent ops of one line count once, and the
  // lines of both ends are left out.
  SmallVector<Attribute> through;
  std::string last = getSourceLine(end->getLoc());
  Operation *op = end;
  while ((op = parents.lookup(op)) && through.size() < maxThrough) {
    std::string line = getSourceLine(op->getLoc());
    if (line == last || line == first)
      continue;
    last = line;
    through.push_back(op->getLoc());
  }
  if (through.empty())
    return {};
  std::reverse(through.begin(), through.end());
  return ArrayAttr::get(function.getContext(), through);
}
