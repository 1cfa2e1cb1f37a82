//===- ImportAxes.cpp - Logical axes to mesh axes -------------------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-import"

using namespace mlir;
using namespace shardc;

/// The logical axes that rules and annotations of the module name, sorted.
static std::vector<std::string> getLogicalAxes(ModuleOp module) {
  llvm::StringSet<> names;
  if (auto rules = module->getAttrOfType<DictionaryAttr>(rulesAttrName))
    for (NamedAttribute rule : rules)
      names.insert(rule.getName().getValue());
  auto add = [&](ArrayAttr axes) {
    if (axes)
      for (auto name : axes.getAsRange<StringAttr>())
        if (!name.empty())
          names.insert(name.getValue());
  };
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      add(function.getArgAttrOfType<ArrayAttr>(i, logicalAxesAttrName));
  module.walk([&](ShardingConstraintOp op) { add(op.getLogicalAxesAttr()); });
  std::vector<std::string> sorted;
  for (const auto &name : names)
    sorted.push_back(name.getKey().str());
  llvm::sort(sorted);
  return sorted;
}

LogicalResult shardc::overrideRules(ModuleOp module, StringRef text) {
  if (text.empty())
    return success();
  Builder builder(module.getContext());
  NamedAttrList rules(module->getAttrOfType<DictionaryAttr>(rulesAttrName));
  llvm::SetVector<StringRef> given;
  std::vector<std::string> known = getLogicalAxes(module);
  for (StringRef rule : llvm::split(text, ',')) {
    auto [name, axes] = rule.split('=');
    name = name.trim();
    if (name.empty() || !rule.contains('='))
      return module.emitError("rules '")
             << text << "': expected NAME=AXIS, NAME=AXIS+AXIS or NAME= "
             << "between commas, got '" << rule << "'";
    if (!given.insert(name))
      return module.emitError("rules '")
             << text << "': logical axis '" << name << "' has two rules";
    SmallVector<Attribute> list;
    for (StringRef axis : llvm::split(axes, '+')) {
      if (!axis.trim().empty())
        list.push_back(builder.getStringAttr(axis.trim()));
      else if (!axes.trim().empty())
        return module.emitError("rules '") << text << "': the rule of '" << name
                                           << "' has an axis without a name";
    }
    rules.set(name, builder.getArrayAttr(list));
  }
  for (StringRef name : given) {
    if (llvm::is_contained(known, name))
      continue;
    if (known.empty())
      return module.emitError("rules '")
             << text << "': the model names no logical axes";
    return module.emitError("rules '")
           << text << "': the model has no logical axis '" << name << "'"
           << suggest(name.str(), known);
  }
  module->setAttr(rulesAttrName, rules.getDictionary(module.getContext()));
  return success();
}

namespace {

/// Turns lists of logical names into shardings.
class Resolver {
public:
  explicit Resolver(MeshOp mesh)
      : mesh(mesh), meshName(FlatSymbolRefAttr::get(mesh.getSymNameAttr())),
        rules(mesh->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(
            rulesAttrName)) {}

  /// Returns the sharding of a tensor of `type` whose dimensions have the
  /// logical axes `names`. Errors continue the message of `emitError`.
  FailureOr<ShardingAttr>
  resolve(ArrayAttr names, RankedTensorType type,
          function_ref<InFlightDiagnostic()> emitError) {
    SmallVector<SmallVector<StringAttr>> dims;
    for (auto name : names.getAsRange<StringAttr>()) {
      dims.emplace_back();
      if (!name.empty() && failed(addAxes(name, dims.back(), emitError)))
        return failure();
    }
    ShardingAttr sharding = ShardingAttr::getClosed(meshName, dims);
    if (failed(verifySharding(sharding, type, mesh, emitError)))
      return failure();
    return sharding;
  }

private:
  /// Appends the mesh axes that the rule of `name` gives.
  LogicalResult addAxes(StringAttr name, SmallVectorImpl<StringAttr> &axes,
                        function_ref<InFlightDiagnostic()> emitError) {
    auto rule = rules ? rules.getAs<ArrayAttr>(name) : ArrayAttr();
    if (!rule) {
      InFlightDiagnostic diagnostic = emitError();
      diagnostic << "use logical axis " << name << ", which has no rule";
      if (!rules || rules.empty())
        return diagnostic << "; the module has no `shardc.rules`";
      diagnostic << "; there are rules for ";
      llvm::interleaveComma(rules, diagnostic, [&](NamedAttribute known) {
        diagnostic << known.getName();
      });
      return diagnostic;
    }
    for (auto axis : rule.getAsRange<StringAttr>()) {
      if (mesh.getAxisSize(axis.getValue()) == 0) {
        InFlightDiagnostic diagnostic = emitError();
        diagnostic << "use logical axis " << name << ", whose rule names "
                   << axis << ", but mesh " << meshName << " has axes ";
        llvm::interleaveComma(
            mesh.getAxes().getAsRange<MeshAxisAttr>(), diagnostic,
            [&](MeshAxisAttr known) { diagnostic << known.getName(); });
        return diagnostic;
      }
      axes.push_back(axis);
    }
    return success();
  }

  MeshOp mesh;
  FlatSymbolRefAttr meshName;
  DictionaryAttr rules;
};

} // namespace

LogicalResult shardc::resolveLogicalAxes(func::FuncOp loss, MeshOp mesh) {
  Resolver resolver(mesh);
  for (BlockArgument argument : loss.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto names = loss.getArgAttrOfType<ArrayAttr>(index, logicalAxesAttrName);
    if (!names)
      continue;
    auto emitError = [&] {
      return mlir::emitError(argument.getLoc())
             << "argument " << index << ": logical axes " << names << " ";
    };
    if (loss.getArgAttr(index, shardingAttrName))
      return emitError() << "stand beside a `shardc.sharding`; expected one of "
                            "the two";
    FailureOr<ShardingAttr> sharding = resolver.resolve(
        names, cast<RankedTensorType>(argument.getType()), emitError);
    if (failed(sharding))
      return failure();
    LLVM_DEBUG(llvm::dbgs() << "argument " << index << ": logical axes "
                            << names << " are " << *sharding << '\n');
    loss.setArgAttr(index, shardingAttrName, *sharding);
    loss.removeArgAttr(index, logicalAxesAttrName);
  }

  WalkResult walk = loss.walk([&](ShardingConstraintOp op) {
    ArrayAttr names = op.getLogicalAxesAttr();
    if (!names)
      return WalkResult::advance();
    FailureOr<ShardingAttr> sharding = resolver.resolve(
        names, cast<RankedTensorType>(op.getResult().getType()),
        [&] { return op.emitOpError("logical axes ") << names << " "; });
    if (failed(sharding))
      return WalkResult::interrupt();
    op.setShardingAttr(*sharding);
    op.removeLogicalAxesAttr();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
