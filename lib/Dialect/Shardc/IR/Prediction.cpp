//===- Prediction.cpp - The value that a loss is computed from ------------===//
//
// The ops that the loss needs are visited in their order. A value is open from
// the op that makes it to its last use. All paths from inputs to the loss run
// through a value exactly if it alone is open behind the op that makes it, of
// the values that depend on inputs: it is a cut vertex of the data flow.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Prediction.h"

#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The arguments that a value depends on, by their role.
struct Dependences {
  bool input = false;
  bool label = false;
  bool parameter = false;

  void add(const Dependences &other) {
    input |= other.input;
    label |= other.label;
    parameter |= other.parameter;
  }
};

/// Finds the prediction of one function.
class PredictionFinder {
public:
  PredictionFinder(FunctionOpInterface function, Value loss)
      : block(function.getFunctionBody().front()), function(function),
        loss(loss) {}

  Prediction find() {
    findDependences();
    findLastUses();
    return visitCuts();
  }

private:
  /// The operands through which the result of `op` depends on the output of the
  /// network: the target of an mse may be the input again.
  SmallVector<Value> getReads(Operation *op) const {
    auto isPrediction = [&](Value value) {
      const Dependences &found = dependences.find(value)->second;
      return found.input && !found.label;
    };
    if (auto mse = dyn_cast<MseOp>(op))
      if (isPrediction(mse.getPrediction()))
        return {mse.getPrediction()};
    return llvm::to_vector(op->getOperands());
  }

  void findDependences() {
    for (BlockArgument argument : block.getArguments()) {
      Attribute role = getRole(function, argument.getArgNumber());
      Dependences &found = dependences[argument];
      found.input = isa_and_nonnull<InputAttr>(role);
      found.label = isa_and_nonnull<LabelAttr>(role);
      found.parameter = isa_and_nonnull<ParameterAttr>(role);
      if (found.input && batchSize == 0 &&
          getTensorType(argument).getRank() > 0)
        batchSize = getTensorShape(argument).front();
    }
    for (Operation &op : block) {
      Dependences found;
      for (Value operand : op.getOperands())
        found.add(dependences.lookup(operand));
      // Their targets and labels may come from inputs.
      found.label |= isa<MseOp, SoftmaxCrossEntropyOp>(op);
      for (Value result : op.getResults())
        dependences[result] = found;
    }
  }

  /// Numbers the ops that the loss needs, from the last one down to 1; the
  /// last use of a value is the least number of its users.
  void findLastUses() {
    lastUses[loss] = 0;
    int64_t number = 0;
    for (Operation &op : llvm::reverse(block)) {
      if (llvm::none_of(op.getResults(), [&](Value result) {
            return lastUses.contains(result);
          }))
        continue;
      needed.push_back(&op);
      ++number;
      for (Value operand : getReads(&op))
        lastUses.try_emplace(operand, number);
    }
  }

  /// Whether all paths from inputs to the loss may run through `value`.
  bool isOpened(Value value) const {
    return lastUses.contains(value) && dependences.lookup(value).input;
  }

  Prediction visitCuts() {
    std::vector<int64_t> closing(needed.size() + 1);
    int64_t open = 0;
    auto begin = [&](Value value) {
      if (!isOpened(value))
        return;
      ++open;
      ++closing[lastUses.lookup(value)];
    };
    for (BlockArgument argument : block.getArguments())
      begin(argument);
    Value found;
    Operation *otherHead = nullptr;
    for (int64_t number = needed.size(); number > 0; --number) {
      Operation *op = needed[number - 1];
      for (Value result : op->getResults())
        begin(result);
      open -= closing[number];
      Value result = op->getResult(0);
      const Dependences &of = dependences.find(result)->second;
      if (!of.input || of.label)
        continue;
      ArrayRef<int64_t> shape = getTensorShape(result);
      if (open == 1 && isOpened(result) && !shape.empty() &&
          shape.front() == batchSize) {
        found = result;
        otherHead = nullptr;
      } else if (!otherHead && llvm::any_of(op->getOperands(), [&](Value each) {
                   const Dependences &read = dependences.find(each)->second;
                   return read.parameter && !read.input;
                 })) {
        otherHead = op;
      }
    }
    // The errors of an autoencoder or of a step whose targets are inputs, for
    // example, are cut vertices like any other value.
    if (!dependences.lookup(loss).label)
      return explain(loss.getLoc(),
                     "nothing tells where the output of the network ends and "
                     "the loss begins, since no argument has the role of a "
                     "label; give it to the targets");
    for (Operation *op : needed)
      if (isa<AccumulateOp>(op))
        return explain(
            op->getLoc(),
            "the loss is added up in a loop over microbatches, so no "
            "value has the rows of the batch");
    if (!found)
      return explain(loss.getLoc(),
                     "the loss depends on inputs by other ways than one value "
                     "with the rows of the batch; give the role of labels to "
                     "all inputs that no prediction needs");
    if (otherHead)
      return explain(otherHead->getLoc(),
                     "the loss is computed from several values, of which this "
                     "op makes one; expected one output of the network");
    return {found, ""};
  }

  static Prediction explain(Location loc, StringRef reason) {
    std::string place = getSourceString(loc);
    return {Value(), (place.empty() ? "" : place + ": ") + reason.str()};
  }

  Block &block;
  FunctionOpInterface function;
  Value loss;
  /// Rows of the first input.
  int64_t batchSize = 0;
  llvm::DenseMap<Value, Dependences> dependences;
  /// Of the values that the loss needs.
  llvm::DenseMap<Value, int64_t> lastUses;
  /// Op number n is at n - 1.
  SmallVector<Operation *> needed;
};

} // namespace

Prediction shardc::findPrediction(FunctionOpInterface function, Value loss) {
  return PredictionFinder(function, loss).find();
}
