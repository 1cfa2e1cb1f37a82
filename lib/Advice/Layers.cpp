//===- Layers.cpp - The layers of a loss function -------------------------===//

#include "Layers.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Models/LayerRoles.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

double shardc::getElements(Value value) {
  return static_cast<double>(getTensorType(value).getNumElements());
}

double shardc::getBytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return static_cast<double>(tensor.getNumElements() *
                             getElementBytes(tensor.getElementType()));
}

double Layer::getForwardFlops() const {
  return 2 * std::sqrt(input * weight * result);
}

namespace {

/// The layers of a loss function, in order.
class Layers {
public:
  explicit Layers(func::FuncOp loss) : roles(loss) {
    for (BlockArgument argument : loss.getArguments())
      if (isa_and_nonnull<ParameterAttr>(
              getRole(loss, argument.getArgNumber())))
        trained.insert(argument);
    for (Operation &op : loss.getBody().front().without_terminator()) {
      visit(&op);
      if (llvm::any_of(op.getOperands(), [&](Value operand) {
            return trained.contains(operand);
          }))
        trained.insert(op.result_begin(), op.result_end());
    }
    for (size_t number : byRow) {
      Layer &layer = list[number];
      double times = gathered.contains(number) ? 2 : 1;
      layer.sumElements += times * layer.result;
      layer.sumSteps += times;
    }
  }

  std::vector<Layer> list;

private:
  void visit(Operation *op) {
    auto weight = op->getNumOperands() > 1 && isa<LinearOp, DotGeneralOp>(op)
                      ? dyn_cast<BlockArgument>(op->getOperand(1))
                      : BlockArgument();
    std::optional<int64_t> role = weight ? roles.lookup(weight) : std::nullopt;
    if (!role) {
      if (op->getNumOperands() == 1 && op->getNumResults() == 1)
        if (auto summed = summedBy.find(op->getOperand(0));
            summed != summedBy.end())
          summedBy.try_emplace(op->getResult(0), size_t(summed->second));
      return;
    }
    Value input = op->getOperand(0), result = op->getResult(0);
    size_t number = list.size();
    Layer &layer = list.emplace_back();
    layer.input = getElements(input);
    layer.weight = getElements(weight);
    layer.result = getElements(result);
    layer.hasInputGradient = trained.contains(input);
    layer.isByRow = *role == 1;
    layer.inputValue = input;
    layer.argument = weight;
    layer.weightBytes = getBytesOf(weight.getType());
    if (*role == 1) {
      // A sum that is added to another may wait for it.
      if (llvm::any_of(result.getUsers(),
                       [](Operation *user) { return isa<AddOp>(user); }))
        return;
      byRow.push_back(number);
      summedBy[result] = number;
    } else if (auto summed = summedBy.find(input); summed != summedBy.end()) {
      // Its input is whole again, and so is the gradient of that.
      gathered.insert(summed->second);
      if (inputs.insert(input).second) {
        layer.sumElements += 2 * getElements(input);
        layer.sumSteps += 2;
      }
    }
  }

  LayerRoles roles;
  /// Values that depend on a parameter.
  llvm::DenseSet<Value> trained;
  /// The layer by row whose sum a value is made of, one by one elements.
  llvm::DenseMap<Value, size_t> summedBy;
  llvm::DenseSet<size_t> gathered;
  llvm::DenseSet<Value> inputs;
  std::vector<size_t> byRow;
};

} // namespace

std::vector<Layer> shardc::listLayers(func::FuncOp loss) {
  return Layers(loss).list;
}

/// The number of devices that divide a tensor annotated by `sharding`.
double shardc::getShards(MeshOp mesh, ShardingAttr sharding) {
  double shards = 1;
  for (int64_t dim = 0; sharding && dim < sharding.getRank(); ++dim)
    shards *= mesh.getNumShards(sharding.getAxes(dim));
  return shards;
}

double shardc::getShardsAlong(MeshOp mesh, ShardingAttr sharding,
                              StringRef axis) {
  double shards = 1;
  for (int64_t dim = 0; sharding && dim < sharding.getRank(); ++dim)
    for (StringAttr name : sharding.getAxes(dim))
      if (name.getValue() == axis)
        shards *= mesh.getAxisSize(axis);
  return shards;
}
