//===- ReshardCauses.cpp - Causes of reshards in words --------------------===//

#include "ReshardCauses.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace shardc;

/// The name of `op` without the dialect: "linear" for shardc.linear.
static StringRef getShortName(Operation *op) {
  return op->getName().stripDialect();
}

ReshardCauses::ReshardCauses(func::FuncOp function, const MeshAxes &mesh)
    : function(function), mesh(mesh) {
  for (BlockArgument argument : function.getArguments()) {
    StringRef name = getRoleName(function, argument.getArgNumber());
    names[argument] =
        name.empty() ? "argument " + std::to_string(argument.getArgNumber())
                     : name.str();
    for (Operation *user : argument.getUsers())
      if (isa<ConvertOp>(user)) {
        Value copy = user->getResult(0);
        llvm::raw_string_ostream(names[copy])
            << names[argument] << " as " << getElementTypeOrSelf(copy);
      }
  }
  llvm::StringSet<> parameters;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (isa_and_nonnull<ParameterAttr>(
            function.getArgAttr(index, roleAttrName)))
      parameters.insert(getRoleName(function, index));
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    auto name = function.getResultAttrOfType<StringAttr>(
        operand.getOperandNumber(), resultAttrName);
    if (!name)
      continue;
    bool isParameter = parameters.contains(name.getValue());
    Operation *producer = operand.get().getDefiningOp();
    names.try_emplace(operand.get(), producer && isPart(producer, Part::Update)
                                         ? "new " + name.str()
                                         : name.str());
    if (isParameter)
      nameGradients(operand.get(), name.getValue());
    else
      nameUnscaled(operand.get());
  }
}

/// Names the gradient of `parameter`, whose new value is `result`: the nearest
/// value of the backward pass that is connected with `result` by ops of the
/// update on tensors of its type.
void ReshardCauses::nameGradients(Value result, StringRef parameter) {
  SmallVector<Value> queue = {result};
  llvm::DenseSet<Value> seen;
  for (size_t next = 0; next < queue.size(); ++next) {
    Value value = queue[next];
    Operation *op = value.getDefiningOp();
    if (!op || value.getType() != result.getType() ||
        !seen.insert(value).second)
      continue;
    if (!isPart(op, Part::Update) && !isa<ConstantOp, BroadcastOp>(op)) {
      names.try_emplace(value, "gradient of " + parameter.str());
      return;
    }
    queue.append(op->operand_begin(), op->operand_end());
  }
}

/// Gives the name of `result` to the values that multiplications and divisions
/// scale to it, such as the sum of a mean.
void ReshardCauses::nameUnscaled(Value result) {
  Value value = result;
  while (isa_and_nonnull<MulOp, DivOp>(value.getDefiningOp())) {
    value = value.getDefiningOp()->getOperand(0);
    if (value.getType() != result.getType() ||
        !names.try_emplace(value, names.lookup(result)).second)
      return;
  }
}

std::optional<std::string> ReshardCauses::getName(Value value) const {
  if (auto it = names.find(value); it != names.end())
    return it->second;
  if (auto loop = dyn_cast<AccumulateOp>(value.getParentBlock()->getParentOp());
      loop && isa<BlockArgument>(value))
    return "microbatch of " +
           describe(loop.getOperand(cast<BlockArgument>(value).getArgNumber()));
  return std::nullopt;
}

std::string ReshardCauses::describe(Value value) const {
  if (std::optional<std::string> name = getName(value))
    return *name;
  Operation *op = getComputingOp(value);
  return ("result of " + getShortName(op) + " at " +
          getSourceLine(op->getLoc()))
      .str();
}

std::string ReshardCauses::explain(Value value, const Layout &from,
                                   const Layout &to,
                                   const OpOperand &use) const {
  std::string name = describe(value);
  if (AxisSet reduced = from.unreduced & ~to.unreduced) {
    Operation *op = getComputingOp(value);
    StringRef what = isa<DotGeneralOp>(op) ? "contraction over "
                     : !isa<ReduceOp>(op)  ? "partial sums over "
                     : from.reduction == ReductionKind::Max ? "maximum over "
                                                            : "sum over ";
    return name + ": " + what.str() + mesh.toString(mesh.getList(reduced));
  }
  Operation *user = use.getOwner();
  if (isa<func::ReturnOp>(user))
    return name + " is computed as " + toString(from, mesh) +
           " and stored as " + toString(to, mesh);
  std::string place =
      getShortName(user).str() + " at " + getSourceLine(user->getLoc());
  Value source = value;
  if (auto copy = value.getDefiningOp<ConvertOp>())
    source = copy.getOperand();
  bool isStored = isa<BlockArgument>(source) &&
                  isa<func::FuncOp>(source.getParentBlock()->getParentOp());
  if (!isStored)
    return name + " is " + toString(from, mesh) + "; " + place + " needs " +
           toString(to, mesh);
  AxisSet gathered = from.getAxes() & ~to.getAxes();
  if (gathered && !(to.getAxes() & ~from.getAxes()))
    return name + " is stored sharded over " +
           mesh.toString(mesh.getList(gathered)) +
           " and gathered at its use in " + place;
  return name + " is stored as " + toString(from, mesh) + " and used as " +
         toString(to, mesh) + " in " + place;
}
