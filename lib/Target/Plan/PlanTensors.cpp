//===- PlanTensors.cpp - Persistent tensors, and results, of the plan -----===//

#include "PlanTables.h"

#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>

using namespace mlir;

namespace shardc {

fb::DType getDType(Type elementType) {
  if (elementType.isBF16())
    return fb::DType::BF16;
  if (elementType.isF64())
    return fb::DType::F64;
  if (elementType.isInteger(64))
    return fb::DType::I64;
  if (elementType.isInteger(32))
    return fb::DType::I32;
  if (elementType.isInteger(1))
    return fb::DType::Bool;
  return fb::DType::F32;
}

std::vector<int64_t> getShapeVector(ArrayRef<int64_t> shape) {
  return std::vector<int64_t>(shape.begin(), shape.end());
}

std::vector<uint16_t> getAxisIndices(PlanContext &plan, ArrayAttr axes) {
  std::vector<uint16_t> indices;
  for (Attribute axis : axes)
    indices.push_back(
        plan.mesh.getAxisIndex(cast<StringAttr>(axis).getValue()));
  return indices;
}

flatbuffers::Offset<fb::Sharding> writeSharding(PlanContext &plan,
                                                ShardingAttr sharding,
                                                ArrayRef<int64_t> shape,
                                                ArrayRef<int64_t> local) {
  std::vector<flatbuffers::Offset<fb::DimSharding>> dims;
  for (auto [dim, size] : llvm::enumerate(local)) {
    std::vector<uint16_t> axes;
    int64_t shards = 1;
    if (sharding)
      for (StringAttr axis : sharding.getAxes(dim)) {
        axes.push_back(plan.mesh.getAxisIndex(axis.getValue()));
        shards *= plan.mesh.getAxisSize(axis.getValue());
      }
    bool isPadded = size > (shape[dim] + shards - 1) / shards;
    dims.push_back(
        fb::CreateDimShardingDirect(plan.builder, &axes, isPadded ? size : 0));
  }
  return fb::CreateShardingDirect(plan.builder, &dims);
}

/// The shape that the host sees of a tensor: before it was partitioned, without
/// rows of padding.
static SmallVector<int64_t> getHostShape(RankedTensorType type,
                                         DenseI64ArrayAttr globalShape,
                                         IntegerAttr unpaddedRows) {
  SmallVector<int64_t> shape(globalShape ? globalShape.asArrayRef()
                                         : type.getShape());
  if (unpaddedRows)
    shape.front() = unpaddedRows.getInt();
  return shape;
}

flatbuffers::Offset<fb::Initializer>
writeInitializer(PlanContext &plan, InitAttr init, ArrayRef<int64_t> shape) {
  // Fans as in jax.nn.initializers: the last two dimensions are in and out, any
  // before them a receptive field.
  double fanIn = 1, fanOut = 1;
  if (shape.size() == 1) {
    fanIn = fanOut = shape[0];
  } else if (shape.size() >= 2) {
    double field = 1;
    for (int64_t size : shape.drop_back(2))
      field *= size;
    fanIn = shape[shape.size() - 2] * field;
    fanOut = shape.back() * field;
  }
  auto truncated = [&](double variance) {
    // The standard deviation of a normal distribution cut to [-2, 2].
    constexpr double correction = 0.87962566103423978;
    return fb::CreateInitializer(plan.builder, fb::InitKind::TruncatedNormal, 0,
                                 std::sqrt(variance) / correction);
  };
  auto uniform = [&](double variance) {
    double bound = std::sqrt(3 * variance);
    return fb::CreateInitializer(plan.builder, fb::InitKind::Uniform, -bound,
                                 bound);
  };
  auto argument = [&](size_t index, double otherwise) {
    ArrayRef<FloatAttr> args = init.getArgs();
    return index < args.size() ? args[index].getValueAsDouble() : otherwise;
  };
  switch (init.getKind()) {
  case InitKind::HeNormal:
    return truncated(2 / fanIn);
  case InitKind::HeUniform:
    return uniform(2 / fanIn);
  case InitKind::LecunNormal:
    return truncated(1 / fanIn);
  case InitKind::LecunUniform:
    return uniform(1 / fanIn);
  case InitKind::GlorotNormal:
    return truncated(2 / (fanIn + fanOut));
  case InitKind::GlorotUniform:
    return uniform(2 / (fanIn + fanOut));
  case InitKind::Normal:
    return fb::CreateInitializer(plan.builder, fb::InitKind::Normal, 0,
                                 argument(0, 1));
  case InitKind::Uniform:
    return fb::CreateInitializer(plan.builder, fb::InitKind::Uniform,
                                 argument(0, 0), argument(1, 1));
  case InitKind::Constant:
    break;
  }
  return fb::CreateInitializer(plan.builder, fb::InitKind::Constant,
                               argument(0, 0), 0);
}

/// The place of argument `index` in the arena.
static int64_t getArgumentOffset(func::FuncOp function, unsigned index) {
  auto offset = function.getArgAttrOfType<IntegerAttr>(index, offsetAttrName);
  return offset ? offset.getInt() : 0;
}

/// The tensor that argument `index` of `function` stands for; `places` are
/// those on the ranks of a pipeline, if there is one.
static flatbuffers::Offset<fb::Tensor>
writeTensor(PlanContext &plan, func::FuncOp function, unsigned index,
            ArrayRef<std::pair<int64_t, int64_t>> places) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
  SmallVector<int64_t> shape = getHostShape(
      type,
      function.getArgAttrOfType<DenseI64ArrayAttr>(index, globalShapeAttrName),
      function.getArgAttrOfType<IntegerAttr>(index, unpaddedRowsAttrName));
  Attribute attr = function.getArgAttr(index, roleAttrName);
  fb::Role role = fb::Role::Input;
  StringRef name, parameter;
  InitAttr init;
  int64_t classes = 0;
  if (auto found = dyn_cast_or_null<ParameterAttr>(attr)) {
    role = fb::Role::Parameter;
    name = found.getName().getValue();
    init = found.getInit();
  } else if (auto found = dyn_cast_or_null<StateAttr>(attr)) {
    role = fb::Role::State;
    name = found.getName().getValue();
    init = found.getInit();
    if (StringAttr of = found.getParameter())
      parameter = of.getValue();
  } else if (auto found = dyn_cast_or_null<CopyAttr>(attr)) {
    role = fb::Role::Copy;
    name = found.getName().getValue();
    parameter = found.getParameter().getValue();
  } else if (auto found = dyn_cast_or_null<InputAttr>(attr)) {
    name = found.getName().getValue();
  } else if (auto found = dyn_cast_or_null<LabelAttr>(attr)) {
    role = fb::Role::Label;
    name = found.getName().getValue();
    if (auto noted =
            function.getArgAttrOfType<IntegerAttr>(index, labelClassesAttrName))
      classes = noted.getInt();
  }
  auto nameOffset = plan.builder.CreateString(name.str());
  auto shapeOffset = plan.builder.CreateVector(getShapeVector(shape));
  auto sharding = writeSharding(
      plan, function.getArgAttrOfType<ShardingAttr>(index, shardingAttrName),
      shape, type.getShape());
  flatbuffers::Offset<fb::Initializer> initOffset;
  if (init)
    initOffset = writeInitializer(plan, init, shape);
  flatbuffers::Offset<flatbuffers::String> parameterOffset;
  if (!parameter.empty())
    parameterOffset = plan.builder.CreateString(parameter.str());
  std::vector<flatbuffers::Offset<fb::TensorPlace>> placeTables;
  for (auto [rank, place] : places)
    placeTables.push_back(fb::CreateTensorPlace(plan.builder, rank, place));
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::TensorPlace>>>
      placesOffset;
  if (!places.empty())
    placesOffset = plan.builder.CreateVector(placeTables);
  return fb::CreateTensor(
      plan.builder, nameOffset, role, getDType(type.getElementType()),
      shapeOffset, sharding, initOffset, parameterOffset, classes,
      places.empty() ? getArgumentOffset(function, index) : 0,
      getNumBytes(type), placesOffset);
}

std::vector<flatbuffers::Offset<fb::Tensor>> writeTensors(PlanContext &plan,
                                                          ModuleOp module) {
  /// An argument that stands for a tensor, and the places of the tensor.
  struct Entry {
    func::FuncOp function;
    unsigned index;
    SmallVector<std::pair<int64_t, int64_t>> places;
  };
  llvm::MapVector<StringRef, Entry> entries;
  for (auto function : module.getOps<func::FuncOp>()) {
    auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
    if (!rank && function.getName() != "train_step")
      continue;
    for (unsigned index = 0; index < function.getNumArguments(); ++index) {
      Entry &entry = entries[getRoleName(function, index)];
      if (!entry.function)
        entry = {function, index, {}};
      std::pair<int64_t, int64_t> place = {rank ? rank.getInt() : -1,
                                           getArgumentOffset(function, index)};
      if (rank && !llvm::is_contained(entry.places, place))
        entry.places.push_back(place);
    }
  }
  // In the order of the program of all ranks.
  SmallVector<std::pair<StringRef, Entry>> sorted = entries.takeVector();
  auto getNumber = [](const std::pair<StringRef, Entry> &entry) {
    func::FuncOp function = entry.second.function;
    auto number = function.getArgAttrOfType<IntegerAttr>(entry.second.index,
                                                         numberAttrName);
    return number ? number.getInt() : 0;
  };
  llvm::stable_sort(sorted, [&](const auto &lhs, const auto &rhs) {
    return getNumber(lhs) < getNumber(rhs);
  });
  std::vector<flatbuffers::Offset<fb::Tensor>> tensors;
  for (auto &[name, entry] : sorted) {
    Attribute role = entry.function.getArgAttr(entry.index, roleAttrName);
    if (isa_and_nonnull<InputAttr, LabelAttr>(role))
      plan.inputs[name] = tensors.size();
    llvm::sort(entry.places);
    tensors.push_back(
        writeTensor(plan, entry.function, entry.index, entry.places));
  }
  return tensors;
}

flatbuffers::Offset<fb::Result> writeResult(PlanContext &plan,
                                            func::FuncOp function,
                                            unsigned index, uint32_t buffer) {
  auto name = function.getResultAttrOfType<StringAttr>(index, resultAttrName);
  auto type = cast<RankedTensorType>(function.getResultTypes()[index]);
  std::vector<int64_t> shape = getShapeVector(getHostShape(
      type,
      function.getResultAttrOfType<DenseI64ArrayAttr>(index,
                                                      globalShapeAttrName),
      function.getResultAttrOfType<IntegerAttr>(index, unpaddedRowsAttrName)));
  auto sharding = writeSharding(
      plan, function.getResultAttrOfType<ShardingAttr>(index, shardingAttrName),
      shape, type.getShape());
  return fb::CreateResultDirect(plan.builder, name.str().c_str(), buffer,
                                &shape, sharding);
}

} // namespace shardc
