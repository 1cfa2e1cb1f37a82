//===- LayerRoles.cpp - Which layers tensor parallelism pairs -------------===//

#include "shardc/Models/LayerRoles.h"

#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;

static bool isParameter(Value value) {
  auto argument = dyn_cast_or_null<BlockArgument>(value);
  if (!argument)
    return false;
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function && isa_and_nonnull<ParameterAttr>(
                         getRole(function, argument.getArgNumber()));
}

/// The weight of `op` if it is a layer, else null.
static Value getWeight(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return isParameter(linear.getW()) ? linear.getW() : Value();
  auto gemm = dyn_cast<DotGeneralOp>(op);
  if (!gemm || !gemm.getRhsBatching().empty() || !isParameter(gemm.getRhs()) ||
      gemm.getRhsContracting() != ArrayRef<int64_t>{0} ||
      cast<RankedTensorType>(gemm.getRhs().getType()).getRank() != 2)
    return {};
  return gemm.getRhs();
}

/// Whether `value` is the same for all rows: a constant or a parameter that is
/// repeated.
static bool isRepeated(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isa<ConstantOp, IotaOp, BroadcastOp>(op);
}

/// What becomes of `value` until the next layers: whether it reaches one, and
/// whether it is added to a value that is not made of it alone.
static std::pair<bool, bool> follow(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  bool reachesLayer = false, isAdded = false;
  llvm::SetVector<Operation *> sums;
  for (size_t i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i].getUsers()) {
      if (getWeight(user)) {
        reachesLayer = true;
        continue;
      }
      if (isa<AddOp>(user))
        sums.insert(user);
      for (Value result : user->getResults())
        if (result.getType() == value.getType() && !isa<AddOp>(user))
          reached.insert(result);
    }
  for (Operation *sum : sums)
    isAdded |= llvm::any_of(sum->getOperands(), [&](Value operand) {
      return !reached.contains(operand) && !isRepeated(operand);
    });
  return {reachesLayer, isAdded};
}

LayerRoles::LayerRoles(func::FuncOp loss) {
  for (Operation &op : loss.getBody().front().without_terminator())
    visit(&op);
}

void LayerRoles::setRole(Value parameter, int64_t role) {
  if (parameter && isParameter(parameter))
    roles.try_emplace(parameter, role);
}

void LayerRoles::addLayer(Value input, Value weight, Value bias, Value result) {
  ++numLayers;
  State state = getState(input);
  auto [reachesLayer, isAdded] = follow(result);
  bool isRow = state == State::Split || isAdded ||
               (state == State::Sum && !reachesLayer);
  setRole(weight, isRow);
  setRole(bias, isRow);
  states[result] = isRow ? State::Whole : State::Split;
}

void LayerRoles::visit(Operation *op) {
  if (Value weight = getWeight(op)) {
    auto linear = dyn_cast<LinearOp>(op);
    return addLayer(op->getOperand(0), weight, linear ? linear.getB() : Value(),
                    op->getResult(0));
  }
  if (op->getNumResults() != 1)
    return;
  Value result = op->getResult(0);
  State state = State::Whole;
  for (Value operand : op->getOperands())
    if (operand.getType() == result.getType() &&
        getState(operand) != State::Whole)
      state = state == State::Split ? state : getState(operand);
  bool isSplit = state == State::Split;
  if (auto norm = dyn_cast<LayerNormOp>(op)) {
    setRole(norm.getScale(), !isSplit);
    setRole(norm.getBias(), !isSplit);
  }
  // A bias beside the result of a layer.
  for (Value operand : op->getOperands())
    if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
      setRole(broadcast.getOperand(), !isSplit);
  if (isa<AddOp>(op) && !isSplit &&
      llvm::none_of(op->getOperands(), isRepeated))
    state = State::Sum;
  states[result] = state;
}
