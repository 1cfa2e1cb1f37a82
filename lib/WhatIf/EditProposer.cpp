//===- EditProposer.cpp - Changes that may remove a collective ------------===//

#include "shardc/WhatIf/EditProposer.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/Path.h"

#include <set>

using namespace mlir;
using namespace shardc;

EditProposer::EditProposer(func::FuncOp loss, bool hasPriorities,
                           const SourceAnnotations &source)
    : loss(loss), hasPriorities(hasPriorities), source(source) {
  FailureOr<std::vector<int>> ranks =
      getRanksOfStages(loss->getParentOfType<ModuleOp>());
  if (succeeded(ranks) && !ranks->empty())
    stages.emplace(loss, std::move(*ranks));
}

static bool contains(ArrayRef<std::string> axes, StringAttr axis) {
  return llvm::is_contained(axes, axis.getValue());
}

static ShardingAttr withDims(ShardingAttr sharding,
                             ArrayRef<DimShardingAttr> dims) {
  return ShardingAttr::get(sharding.getContext(), sharding.getMesh(), dims,
                           sharding.getReplicated(), sharding.getUnreduced(),
                           sharding.getUneven());
}

/// `sharding` without the axes on any dimension.
static ShardingAttr withoutAxes(ShardingAttr sharding,
                                ArrayRef<std::string> axes) {
  SmallVector<DimShardingAttr> dims;
  for (DimShardingAttr dim : sharding.getDims()) {
    SmallVector<StringAttr> kept(dim.getAxes());
    llvm::erase_if(kept, [&](StringAttr axis) { return contains(axes, axis); });
    dims.push_back(DimShardingAttr::get(sharding.getContext(), kept,
                                        dim.getIsClosed(), dim.getPriority()));
  }
  return withDims(sharding, dims);
}

std::optional<Annotation> EditProposer::find(StringRef name) {
  if (StringRef place = name; place.consume_front("constraint at ")) {
    int index = 0;
    for (auto constraint : loss.getOps<ShardingConstraintOp>()) {
      if (getSourceLine(constraint.getLoc()) == place)
        return Annotation{-1, index, ""};
      ++index;
    }
    // Gradients are constrained at their parameter.
    for (BlockArgument argument : loss.getArguments())
      if (getSourceLine(argument.getLoc()) == place &&
          loss.getArgAttr(argument.getArgNumber(), gradShardingAttrName))
        return Annotation{static_cast<int>(argument.getArgNumber()), -1,
                          gradShardingAttrName};
    return std::nullopt;
  }
  for (unsigned index = 0; index < loss.getNumArguments(); ++index) {
    StringRef argument = getRoleName(loss, index);
    if (argument == name)
      return Annotation{static_cast<int>(index), -1, shardingAttrName};
    // The states of w0 are w0.m and so on.
    if (isa<ParameterAttr>(loss.getArgAttr(index, roleAttrName)) &&
        name.starts_with(argument) &&
        name.drop_front(argument.size()).starts_with("."))
      return Annotation{static_cast<int>(index), -1, stateShardingAttrName};
  }
  return std::nullopt;
}

ShardingAttr EditProposer::getSharding(const Annotation &annotation) {
  if (annotation.argument < 0)
    return getConstraint(loss, annotation.constraint).getShardingAttr();
  return loss.getArgAttrOfType<ShardingAttr>(annotation.argument,
                                             annotation.attribute);
}

int64_t EditProposer::getRank(const Annotation &annotation) {
  Type type = annotation.argument >= 0
                  ? loss.getArgumentTypes()[annotation.argument]
                  : getConstraint(loss, annotation.constraint).getType();
  return cast<RankedTensorType>(type).getRank();
}

ShardingAttr EditProposer::parse(StringRef layout) {
  auto meshes = loss->getParentOfType<ModuleOp>().getOps<MeshOp>();
  if (layout.contains("unreduced") || meshes.empty())
    return {};
  std::string text = ("#shardc.sharding<@" + (*meshes.begin()).getSymName() +
                      ", " + layout + ">")
                         .str();
  return dyn_cast_or_null<ShardingAttr>(
      parseAttribute(text, loss.getContext()));
}

/// "constraint at file.mlir:12" for an end at "path/file.mlir:12:3".
static std::string getConstraintName(const ChainEnd &end) {
  return ("constraint at " +
          llvm::sys::path::filename(StringRef(end.source).rsplit(':').first))
      .str();
}

/// Gives the annotation at one end the sharding of the other end. An argument
/// is stored as it is used, or as its new value is produced; a constraint takes
/// the sharding of its operand, or that of its users.
void EditProposer::meetOtherEnd(const MovedTensor &tensor, Edits &edits) {
  std::optional<Annotation> annotation;
  ShardingAttr sharding;
  if (llvm::is_contained({"parameter", "state", "input", "label"},
                         tensor.producer.op) &&
      !tensor.producer.arguments.empty()) {
    annotation = find(tensor.producer.arguments.front());
    sharding = parse(tensor.to);
  } else if (tensor.consumer.op == "sharding_constraint") {
    annotation = find(getConstraintName(tensor.consumer));
    sharding = parse(tensor.from);
  } else if (tensor.producer.op == "sharding_constraint") {
    annotation = find(getConstraintName(tensor.producer));
    sharding = parse(tensor.to);
  } else if (tensor.consumer.op == "rest" &&
             !tensor.consumer.arguments.empty()) {
    annotation = find(tensor.consumer.arguments.front());
    sharding = parse(tensor.from);
  }
  if (annotation && sharding && sharding != getSharding(*annotation))
    edits.add(*annotation, sharding);
}

/// Removes the axes from the annotations that they came from. Inputs and labels
/// change together, because they share the batch.
void EditProposer::dropAxes(const ChainEnd &end, ArrayRef<std::string> axes,
                            Edits &edits) {
  auto drop = [&](const Annotation &annotation) {
    ShardingAttr sharding = getSharding(annotation);
    if (!sharding)
      return;
    if (ShardingAttr without = withoutAxes(sharding, axes); without != sharding)
      edits.add(annotation, without);
  };
  auto isData = [&](int argument) {
    return argument >= 0 &&
           isa<InputAttr, LabelAttr>(loss.getArgAttr(argument, roleAttrName));
  };
  for (const AxisOrigin &origin : end.origins) {
    std::optional<Annotation> annotation = find(origin.name);
    if (!annotation || !llvm::is_contained(axes, origin.axis))
      continue;
    drop(*annotation);
    if (isData(annotation->argument))
      for (unsigned index = 0; index < loss.getNumArguments(); ++index)
        if (isData(index))
          drop({static_cast<int>(index), -1, shardingAttrName});
  }
}

/// The sharding of the annotation with the axes on dimension `place` and
/// nowhere else; null if it has it already.
ShardingAttr EditProposer::withAxesAt(const Annotation &annotation,
                                      ArrayRef<std::string> axes,
                                      int64_t place) {
  MLIRContext *context = loss.getContext();
  ShardingAttr sharding = getSharding(annotation);
  if (!sharding) {
    SmallVector<DimShardingAttr> open(
        getRank(annotation),
        DimShardingAttr::get(context, {}, /*isClosed=*/false, std::nullopt));
    if (ShardingAttr any = parse("[]"))
      sharding = withDims(any, open);
  }
  if (!sharding)
    return {};
  ShardingAttr without = withoutAxes(sharding, axes);
  SmallVector<DimShardingAttr> dims(without.getDims());
  SmallVector<StringAttr> placed(dims[place].getAxes());
  for (const std::string &axis : axes)
    placed.push_back(StringAttr::get(context, axis));
  dims[place] = DimShardingAttr::get(context, placed, dims[place].getIsClosed(),
                                     dims[place].getPriority());
  ShardingAttr changed = withDims(without, dims);
  return changed == sharding ? ShardingAttr() : changed;
}

/// Puts the axes on each dimension in turn of an argument of the op.
void EditProposer::proposePlaces(const ChainEnd &end,
                                 ArrayRef<std::string> axes,
                                 Proposals &proposals) {
  for (const std::string &name : end.arguments) {
    std::optional<Annotation> annotation = find(name);
    if (!annotation)
      continue;
    for (int64_t place = 0; place < getRank(*annotation); ++place) {
      ShardingAttr changed = withAxesAt(*annotation, axes, place);
      if (!changed)
        continue;
      Edits edits;
      edits.add(*annotation, changed);
      proposals.push_back(std::move(edits));
    }
  }
}

/// Where both ends have an axis, removes it from the consumer's annotation.
void EditProposer::proposeYielding(const MovedTensor &tensor,
                                   ArrayRef<std::string> axes,
                                   Proposals &proposals) {
  for (const AxisOrigin &origin : tensor.consumer.origins) {
    bool competes =
        llvm::any_of(tensor.producer.origins, [&](const AxisOrigin &other) {
          return other.axis == origin.axis && other.name != origin.name;
        });
    std::optional<Annotation> annotation = find(origin.name);
    ShardingAttr sharding =
        annotation ? getSharding(*annotation) : ShardingAttr();
    if (!competes || !sharding || !llvm::is_contained(axes, origin.axis))
      continue;
    SmallVector<DimShardingAttr> dims;
    for (DimShardingAttr dim : sharding.getDims()) {
      bool yields = llvm::any_of(dim.getAxes(), [&](StringAttr axis) {
        return axis.getValue() == origin.axis;
      });
      dims.push_back(
          yields ? DimShardingAttr::get(loss.getContext(), dim.getAxes(),
                                        dim.getIsClosed(),
                                        dim.getPriority().value_or(0) + 1)
                 : dim);
    }
    Edits edits;
    edits.add(*annotation, withDims(sharding, dims));
    proposals.push_back(std::move(edits));
  }
}

/// Whether `op` has a weight with two dimensions or more, as GEMMs have.
static bool hasMatrix(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value operand) {
    return isWeight(operand) &&
           cast<RankedTensorType>(operand.getType()).getRank() > 1;
  });
}

/// The GEMM that makes `value`, possibly through ops on its elements; null if
/// there is none.
static Operation *findGemmBefore(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && !hasMatrix(op))
    op = op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return op;
}

/// The GEMM that uses the results of `op`, possibly through ops on their
/// elements, or `op` itself; null if there is none.
static Operation *findGemmBehind(Operation *op) {
  while (op && !hasMatrix(op))
    op = op->getNumResults() > 0 && !op->use_empty() ? *op->user_begin()
                                                     : nullptr;
  return op;
}

/// Shards the weights of the GEMM before a boundary by column, and those of the
/// GEMM behind it by row: each device then makes, sends and reads a part.
void EditProposer::shardAround(Value value, Operation *user,
                               const std::string &axis, Edits &edits) {
  Operation *before = findGemmBefore(value), *behind = findGemmBehind(user);
  if (!before || !behind)
    return;
  auto place = [&](Value operand, bool isLast) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || !isWeight(operand))
      return;
    Annotation annotation{static_cast<int>(argument.getArgNumber()), -1,
                          shardingAttrName};
    int64_t rank = getRank(annotation);
    if (isLast ? rank == 0 : rank < 2)
      return;
    if (ShardingAttr changed =
            withAxesAt(annotation, axis, isLast ? rank - 1 : 0))
      edits.add(annotation, changed);
  };
  for (Value operand : before->getOperands())
    place(operand, /*isLast=*/true);
  for (Value operand : behind->getOperands())
    place(operand, /*isLast=*/false);
}

/// Constrains the result of op `number` to the layout `from` with `axis` on one
/// more dimension. The axis yields to the annotations on both sides: only what
/// crosses is sharded over it.
void EditProposer::proposeConstraints(size_t number, StringRef from,
                                      const std::string &axis,
                                      Proposals &proposals) {
  ShardingAttr sharding = hasPriorities ? parse(from) : ShardingAttr();
  if (!sharding)
    return;
  for (int64_t place = sharding.getRank() - 1; place >= 0; --place) {
    SmallVector<DimShardingAttr> dims(sharding.getDims());
    SmallVector<StringAttr> axes(dims[place].getAxes());
    axes.push_back(StringAttr::get(loss.getContext(), axis));
    dims[place] =
        DimShardingAttr::get(loss.getContext(), axes, dims[place].getIsClosed(),
                             /*priority=*/1);
    Edits edits;
    edits.addConstraint(number, withDims(sharding, dims));
    proposals.push_back(std::move(edits));
  }
}

/// Shards what crosses with `tensor` over axes that it is not sharded over: by
/// the weights on both sides of the boundary, by a constraint, or inputs by
/// row.
void EditProposer::proposeShardedBoundary(const MovedTensor &tensor,
                                          Proposals &proposals) {
  auto meshes = loss->getParentOfType<ModuleOp>().getOps<MeshOp>();
  if (!stages || !tensor.producer.stage || !tensor.consumer.stage ||
      meshes.empty())
    return;
  MeshAxes mesh = getMeshAxes(*meshes.begin());
  auto [first, last] =
      std::minmax(*tensor.producer.stage, *tensor.consumer.stage);
  auto isOn = [](Operation *op, int64_t stage) {
    auto attr = op->getAttrOfType<IntegerAttr>(stageAttrName);
    return attr && attr.getInt() == stage;
  };
  for (int index = 0; index < mesh.getNumAxes(); ++index) {
    std::string axis = mesh.getName(index).str();
    // An axis that --mesh alone has cannot be named in the source.
    if (mesh.getSize(index) < 2 || source.axes.count(axis) == 0 ||
        StringRef(tensor.from).contains('"' + axis + '"'))
      continue;
    Edits rows, weights;
    for (unsigned number = 0; number < loss.getNumArguments(); ++number) {
      Annotation annotation{static_cast<int>(number), -1, shardingAttrName};
      if (isa<InputAttr, LabelAttr>(loss.getArgAttr(number, roleAttrName)) &&
          getRank(annotation) > 0)
        if (ShardingAttr changed = withAxesAt(annotation, axis, 0))
          rows.add(annotation, changed);
    }
    Proposals constraints;
    for (auto [number, op] : llvm::enumerate(loss.getBody().front())) {
      if (op.getNumResults() != 1 || !isOn(&op, first))
        continue;
      Value result = op.getResult(0);
      bool crosses = false;
      for (Operation *user : result.getUsers())
        if (isOn(user, last)) {
          shardAround(result, user, axis, weights);
          crosses = true;
        }
      ShardingAttr sharding = parse(tensor.from);
      if (crosses && sharding &&
          sharding.getRank() == getTensorType(result).getRank())
        proposeConstraints(number, tensor.from, axis, constraints);
    }
    proposals.push_back(std::move(weights));
    llvm::append_range(proposals, constraints);
    proposals.push_back(std::move(rows));
    if (tensor.producer.op == "parameter")
      proposePlaces(tensor.producer, axis, proposals);
  }
}

/// Other shardings of what crosses, at most half of `limit`, and other
/// boundaries between the stages of `send`.
void EditProposer::proposeForSend(const ExplainedCollective &send, size_t limit,
                                  Proposals &proposals) {
  Proposals shardings;
  for (const MovedTensor &tensor : send.tensors)
    proposeShardedBoundary(tensor, shardings);
  llvm::erase_if(shardings, [](const Edits &edits) { return edits.empty(); });
  if (shardings.size() > limit / 2)
    shardings.resize(limit / 2);
  for (const MovedTensor &tensor : send.tensors) {
    if (!stages || !tensor.producer.stage || !tensor.consumer.stage)
      continue;
    for (StageLabels &labels :
         stages->propose(*tensor.producer.stage, *tensor.consumer.stage,
                         limit - shardings.size())) {
      Edits edits;
      edits.setStages(std::move(labels));
      proposals.push_back(std::move(edits));
    }
  }
  llvm::append_range(proposals, shardings);
}

void EditProposer::proposeForMoves(const ExplainedCollective &collective,
                                   size_t limit, Proposals &proposals) {
  Edits meeting, producers, consumers;
  for (const MovedTensor &tensor : collective.tensors) {
    meetOtherEnd(tensor, meeting);
    dropAxes(tensor.producer, collective.axes, producers);
    dropAxes(tensor.consumer, collective.axes, consumers);
  }
  for (Edits *edits : {&meeting, &producers, &consumers})
    proposals.push_back(*edits);
  for (const MovedTensor &tensor : collective.tensors) {
    Edits one;
    meetOtherEnd(tensor, one);
    proposals.push_back(std::move(one));
    for (const ChainEnd *end : {&tensor.producer, &tensor.consumer}) {
      Edits edits;
      dropAxes(*end, collective.axes, edits);
      proposals.push_back(std::move(edits));
    }
    proposePlaces(tensor.consumer, collective.axes, proposals);
    proposePlaces(tensor.producer, collective.axes, proposals);
    if (hasPriorities)
      proposeYielding(tensor, collective.axes, proposals);
    if (proposals.size() > 4 * limit)
      break;
  }
}

std::vector<Edits> EditProposer::propose(const ExplainedCollective &collective,
                                         size_t limit) {
  Proposals proposals;
  if (collective.isSend())
    proposeForSend(collective, limit, proposals);
  else
    proposeForMoves(collective, limit, proposals);
  std::vector<Edits> distinct;
  std::set<std::string> seen;
  for (Edits &edits : proposals)
    if (!edits.empty() && distinct.size() < limit &&
        seen.insert(edits.getKey()).second)
      distinct.push_back(std::move(edits));
  return distinct;
}
