//===- RoundInUpdate.cpp - Keep parameters in narrow types, too -----------===//
//
// A step that computes in bf16 begins with rounding the parameters, whose new
// values the step before had at hand. So the rounded ones become arguments,
// copies, which the update writes with the parameters. When somebody else has
// written a parameter, `round_parameters` makes them.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-round-in-update"

namespace shardc {
#define GEN_PASS_DEF_ROUNDINUPDATEPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Whether `op` rounds its operand: both are floating-point types.
static bool isRounding(ConvertOp op) {
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op.getOperand()));
  auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op.getResult()));
  return from && to && to.getWidth() < from.getWidth();
}

static bool isParameter(func::FuncOp function, BlockArgument argument) {
  return isa_and_nonnull<ParameterAttr>(
      getRole(function, argument.getArgNumber()));
}

/// What an argument or result says of its layout.
static NamedAttrList getLayout(func::FuncOp function, BlockArgument argument) {
  NamedAttrList attributes;
  for (StringRef name : {shardingAttrName, globalShapeAttrName})
    if (Attribute attr = function.getArgAttr(argument.getArgNumber(), name))
      attributes.append(name, attr);
  return attributes;
}

static Value round(OpBuilder &builder, Location loc, Value value, Type type) {
  auto op = builder.create<ConvertOp>(loc, type, value);
  op->setAttr(partAttrName, PartAttr::get(builder.getContext(), Part::Update));
  return op;
}

/// Appends result `name` to `function`, laid out as `like` is.
static void addResult(func::FuncOp function, Value value, StringAttr name,
                      BlockArgument like) {
  NamedAttrList attributes = getLayout(function, like);
  attributes.append(resultAttrName, name);
  function.insertResult(function.getNumResults(), value.getType(),
                        attributes.getDictionary(function.getContext()));
  Operation *terminator = function.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
}

namespace {

/// A parameter's name and an element type.
using Key = std::pair<StringAttr, Type>;

struct RoundInUpdatePass
    : shardc::impl::RoundInUpdatePassBase<RoundInUpdatePass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    findCopies();
    if (copies.empty())
      return;
    if (Operation *taken = getOperation().lookupSymbol(kRoundParametersName)) {
      taken->emitError("this is the name of the program that rounds "
                       "parameters: expected another one");
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (auto &[key, role] : copies)
        useCopy(function, key, role);
    buildRounding();
  }

private:
  llvm::MapVector<Key, CopyAttr> copies;

  /// The roundings of a parameter, in `function` and its loops.
  static SmallVector<ConvertOp> getRoundings(BlockArgument parameter,
                                             Type type) {
    SmallVector<ConvertOp> roundings;
    for (Operation *user : parameter.getUsers())
      if (auto op = dyn_cast<ConvertOp>(user);
          op && isRounding(op) && getElementTypeOrSelf(op.getResult()) == type)
        roundings.push_back(op);
    return roundings;
  }

  /// Of what programs round that update it: another one's rounding alone is
  /// worth no bytes at rest.
  void findCopies() {
    llvm::StringSet<> names;
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        names.insert(getRoleName(function, i));
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        if (auto name =
                function.getResultAttrOfType<StringAttr>(i, resultAttrName))
          names.insert(name.getValue());
    getOperation().walk([&](ConvertOp op) {
      auto argument = dyn_cast<BlockArgument>(op.getOperand());
      auto function =
          argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
                   : func::FuncOp();
      if (!function || !isParameter(function, argument) || !isRounding(op))
        return;
      StringAttr parameter =
          getRoleName(getRole(function, argument.getArgNumber()));
      if (!findResult(function, parameter))
        return;
      Type type = getElementTypeOrSelf(op.getResult());
      CopyAttr &role = copies[{parameter, type}];
      if (role)
        return;
      std::string name;
      llvm::raw_string_ostream(name) << parameter.getValue() << '.' << type;
      while (!names.insert(name).second)
        name += '_';
      role = CopyAttr::get(&getContext(), StringAttr::get(&getContext(), name),
                           parameter);
      LLVM_DEBUG(llvm::dbgs() << "keep " << role << '\n');
    });
  }

  /// Makes the copy an argument of `function` if that rounds the parameter, or
  /// returns a new value of it: then of the copy, too.
  void useCopy(func::FuncOp function, Key key, CopyAttr role) {
    BlockArgument parameter = findArgument(function, key.first.getValue());
    if (!parameter || !isParameter(function, parameter))
      return;
    SmallVector<ConvertOp> roundings = getRoundings(parameter, key.second);
    Value updated = findResult(function, key.first);
    if (roundings.empty() && !updated)
      return;
    BlockArgument copy = addArgument(function, parameter, key.second, role);
    for (ConvertOp rounding : roundings) {
      rounding.replaceAllUsesWith(copy);
      rounding.erase();
    }
    if (!updated)
      return;
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(updated);
    Value rounded = updated == parameter ? Value(copy)
                                         : round(builder, updated.getLoc(),
                                                 updated, copy.getType());
    addResult(function, rounded, role.getName(), parameter);
  }

  static BlockArgument addArgument(func::FuncOp function,
                                   BlockArgument parameter, Type elementType,
                                   CopyAttr role) {
    NamedAttrList attributes = getLayout(function, parameter);
    attributes.append(roleAttrName, role);
    unsigned index = function.getNumArguments();
    auto type = cast<RankedTensorType>(parameter.getType());
    function.insertArgument(index, type.clone(elementType),
                            attributes.getDictionary(function.getContext()),
                            parameter.getLoc());
    return function.getArgument(index);
  }

  /// What `function` returns as `name`, or null.
  static Value findResult(func::FuncOp function, StringAttr name) {
    Operation *terminator = function.getBody().front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands())
      if (function.getResultAttr(operand.getOperandNumber(), resultAttrName) ==
          name)
        return operand.get();
    return {};
  }

  /// The program that makes all copies.
  void buildRounding() {
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto function = builder.create<func::FuncOp>(
        getOperation().getLoc(), kRoundParametersName,
        builder.getFunctionType({}, {}));
    builder.setInsertionPointToEnd(function.addEntryBlock());
    auto end = builder.create<func::ReturnOp>(function.getLoc());
    for (auto &[key, role] : copies)
      addParameter(function, key.first);
    for (auto &[key, role] : copies) {
      BlockArgument parameter = findArgument(function, key.first.getValue());
      BlockArgument copy = addArgument(function, parameter, key.second, role);
      builder.setInsertionPoint(end);
      addResult(function,
                round(builder, parameter.getLoc(), parameter, copy.getType()),
                role.getName(), parameter);
    }
  }

  /// Adds parameter `name` to `function` as another program has it.
  void addParameter(func::FuncOp function, StringAttr name) {
    if (findArgument(function, name.getValue()))
      return;
    for (auto other : getOperation().getOps<func::FuncOp>())
      if (BlockArgument argument = findArgument(other, name.getValue())) {
        NamedAttrList attributes = getLayout(other, argument);
        attributes.append(roleAttrName,
                          getRole(other, argument.getArgNumber()));
        function.insertArgument(function.getNumArguments(), argument.getType(),
                                attributes.getDictionary(&getContext()),
                                argument.getLoc());
        return;
      }
  }
};

} // namespace
