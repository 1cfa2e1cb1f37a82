//===- RoundInUpdate.cpp - Keep parameters in narrow types, too -----------===//
//
// A step that computes in bf16 rounds the parameters first. The step before has
// computed their values, so its update also writes rounded copies, which become
// arguments and results. The program `round_parameters` makes the copies after
// a parameter was written from outside.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
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

/// The attributes of an argument, or of a result like it, that are its layout.
static NamedAttrList getLayout(func::FuncOp function, BlockArgument argument) {
  NamedAttrList attributes;
  for (StringRef name : {shardingAttrName, globalShapeAttrName})
    if (Attribute attr = function.getArgAttr(argument.getArgNumber(), name))
      attributes.append(name, attr);
  return attributes;
}

/// Rounds `value` on `stage` of a pipeline, which is null without one.
static Value round(OpBuilder &builder, Location loc, Value value, Type type,
                   Attribute stage) {
  auto op = builder.create<ConvertOp>(loc, type, value);
  op->setAttr(partAttrName, PartAttr::get(builder.getContext(), Part::Update));
  if (stage)
    op->setAttr(stageAttrName, stage);
  return op;
}

namespace {

/// An argument or a result to append; `value` is the returned value.
struct NewArgument {
  Type type;
  NamedAttrList attributes;
  Location loc;
};
struct NewResult {
  Value value;
  NamedAttrList attributes;
};

} // namespace

// The functions below append everything at once: the type of a function lists
// all arguments and results, and types live as long as the context.

static SmallVector<BlockArgument>
appendArguments(func::FuncOp function, ArrayRef<NewArgument> arguments) {
  unsigned before = function.getNumArguments();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locs;
  for (const NewArgument &argument : arguments) {
    types.push_back(argument.type);
    attributes.push_back(
        argument.attributes.getDictionary(function.getContext()));
    locs.push_back(argument.loc);
  }
  function.insertArguments(SmallVector<unsigned>(types.size(), before), types,
                           attributes, locs);
  return SmallVector<BlockArgument>(function.getArguments().drop_front(before));
}

static void appendResults(func::FuncOp function, ArrayRef<NewResult> results) {
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (const NewResult &result : results) {
    values.push_back(result.value);
    attributes.push_back(
        result.attributes.getDictionary(function.getContext()));
  }
  SmallVector<unsigned> indices(values.size(), function.getNumResults());
  function.insertResults(indices, TypeRange(values), attributes);
  Operation *terminator = function.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), values);
}

/// By name the numbers of the results.
static llvm::DenseMap<StringAttr, unsigned>
getResultsByName(func::FuncOp function) {
  llvm::DenseMap<StringAttr, unsigned> results;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto name =
            function.getResultAttrOfType<StringAttr>(index, resultAttrName))
      results.try_emplace(name, index);
  return results;
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
      useCopies(function);
    buildRounding();
  }

private:
  llvm::MapVector<Key, CopyAttr> copies;
  /// By parameter the stage of a pipeline that updates it.
  llvm::DenseMap<StringAttr, Attribute> stages;

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

  /// Decides which parameters get copies: those that a program both rounds and
  /// updates. A program that only rounds is worth no stored bytes.
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
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      llvm::DenseMap<StringAttr, unsigned> results = getResultsByName(function);
      function.walk([&](ConvertOp op) {
        auto argument = dyn_cast<BlockArgument>(op.getOperand());
        if (!argument || argument.getOwner()->getParentOp() != function ||
            !isParameter(function, argument) || !isRounding(op))
          return;
        StringAttr parameter =
            getRoleName(getRole(function, argument.getArgNumber()));
        if (!results.contains(parameter))
          return;
        Type type = getElementTypeOrSelf(op.getResult());
        CopyAttr &role = copies[{parameter, type}];
        if (role)
          return;
        std::string name;
        llvm::raw_string_ostream(name) << parameter.getValue() << '.' << type;
        while (!names.insert(name).second)
          name += '_';
        role = CopyAttr::get(&getContext(),
                             StringAttr::get(&getContext(), name), parameter);
      });
    }
  }

  /// Makes the copies of those parameters arguments of `function` that it
  /// rounds or updates, and results of it if it updates the parameters.
  void useCopies(func::FuncOp function) {
    llvm::StringMap<BlockArgument> arguments = getArgumentsByName(function);
    llvm::DenseMap<StringAttr, unsigned> results = getResultsByName(function);
    Operation *terminator = function.getBody().front().getTerminator();
    SmallVector<std::pair<BlockArgument, Key>> used;
    SmallVector<NewArgument> newArguments;
    for (auto &[key, role] : copies) {
      BlockArgument parameter = arguments.lookup(key.first.getValue());
      if (!parameter || !isParameter(function, parameter) ||
          (getRoundings(parameter, key.second).empty() &&
           !results.contains(key.first)))
        continue;
      used.emplace_back(parameter, key);
      newArguments.push_back(getCopy(function, parameter, key.second, role));
    }
    SmallVector<NewResult> newResults;
    for (auto [use, copy] :
         llvm::zip_equal(used, appendArguments(function, newArguments))) {
      auto [parameter, key] = use;
      for (ConvertOp rounding : getRoundings(parameter, key.second)) {
        rounding.replaceAllUsesWith(copy);
        rounding.erase();
      }
      auto result = results.find(key.first);
      if (result == results.end())
        continue;
      Value updated = terminator->getOperand(result->second);
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfterValue(updated);
      Attribute stage;
      if (Operation *update = updated.getDefiningOp())
        stage = stages[key.first] = update->getAttr(stageAttrName);
      Value rounded = updated == parameter
                          ? Value(copy)
                          : round(builder, updated.getLoc(), updated,
                                  copy.getType(), stage);
      newResults.push_back(
          getResult(function, rounded, copies[key], parameter));
    }
    appendResults(function, newResults);
  }

  /// The copy `role`, laid out as `parameter` is.
  static NewArgument getCopy(func::FuncOp function, BlockArgument parameter,
                             Type elementType, CopyAttr role) {
    NamedAttrList attributes = getLayout(function, parameter);
    attributes.append(roleAttrName, role);
    auto type = cast<RankedTensorType>(parameter.getType());
    return {type.clone(elementType), attributes, parameter.getLoc()};
  }

  /// The new value of the copy `role`, laid out as `parameter` is.
  static NewResult getResult(func::FuncOp function, Value value, CopyAttr role,
                             BlockArgument parameter) {
    NamedAttrList attributes = getLayout(function, parameter);
    attributes.append(resultAttrName, role.getName());
    return {value, attributes};
  }

  /// The program that makes all copies.
  void buildRounding() {
    // Parameters are as the first program that has them says.
    llvm::StringMap<std::pair<func::FuncOp, BlockArgument>> arguments;
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (auto &named : getArgumentsByName(function))
        arguments.try_emplace(named.getKey(), function, named.getValue());
    OpBuilder builder = OpBuilder::atBlockEnd(getOperation().getBody());
    auto function = builder.create<func::FuncOp>(
        getOperation().getLoc(), kRoundParametersName,
        builder.getFunctionType({}, {}));
    builder.setInsertionPointToEnd(function.addEntryBlock());
    auto end = builder.create<func::ReturnOp>(function.getLoc());
    llvm::SetVector<StringAttr> names;
    for (auto &[key, role] : copies)
      names.insert(key.first);
    SmallVector<NewArgument> parameters;
    for (StringAttr name : names) {
      auto [other, argument] = arguments.lookup(name.getValue());
      NamedAttrList attributes = getLayout(other, argument);
      attributes.append(roleAttrName, getRole(other, argument.getArgNumber()));
      parameters.push_back({argument.getType(), attributes, argument.getLoc()});
    }
    llvm::DenseMap<StringAttr, BlockArgument> byName;
    for (auto [name, parameter] :
         llvm::zip_equal(names, appendArguments(function, parameters)))
      byName[name] = parameter;
    SmallVector<NewArgument> newCopies;
    for (auto &[key, role] : copies)
      newCopies.push_back(
          getCopy(function, byName[key.first], key.second, role));
    builder.setInsertionPoint(end);
    SmallVector<NewResult> results;
    for (auto [entry, copy] :
         llvm::zip_equal(copies, appendArguments(function, newCopies))) {
      auto &[key, role] = entry;
      BlockArgument parameter = byName[key.first];
      results.push_back(
          getResult(function,
                    round(builder, parameter.getLoc(), parameter,
                          copy.getType(), stages.lookup(key.first)),
                    role, parameter));
    }
    appendResults(function, results);
  }
};

} // namespace
