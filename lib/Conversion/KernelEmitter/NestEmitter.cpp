//===- NestEmitter.cpp - Scopes, loops and lanes --------------------------===//

#include "shardc/Conversion/KernelEmitter/NestEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace shardc {

NestEmitter::NestEmitter(OpBuilder &builder, Location loc, MeshOp mesh,
                         Block *entry, Value context, int64_t bufferAlignment)
    : builder(builder), loc(loc), math(this->builder, loc, /*numLanes=*/1),
      mesh(mesh), entry(entry), context(context),
      bufferAlignment(bufferAlignment) {
  known.resize(1);
}

void NestEmitter::startNest(int64_t numLanes) {
  math.numLanes = numLanes;
  known.clear();
  known.resize(1);
  scopes.clear();
  isFlat = false;
}

Type NestEmitter::getComputeType(Value tensor) {
  Type element = getElementTypeOrSelf(tensor.getType());
  return element.isBF16() ? Type(Float32Type::get(element.getContext()))
                          : element;
}

NestEmitter::Key NestEmitter::getKey(Value tensor, ArrayRef<Index> index) {
  Key key{tensor.getAsOpaquePointer()};
  for (const Index &dim : index) {
    key.push_back(dim.value.getAsOpaquePointer());
    key.push_back(reinterpret_cast<const void *>(dim.lanes * 2));
    key.push_back(reinterpret_cast<const void *>(dim.last));
  }
  return key;
}

IndexList NestEmitter::dropUnitDims(Value tensor, ArrayRef<Index> index) {
  IndexList result(index.begin(), index.end());
  for (auto [place, size] : llvm::zip_equal(result, getShape(tensor)))
    if (size == 1)
      place = Index();
  return result;
}

static unsigned getLevel(ArrayRef<Index> index) {
  unsigned level = 0;
  for (const Index &dim : index)
    level = std::max(level, dim.level);
  return level;
}

Value NestEmitter::atLevel(unsigned level, llvm::function_ref<Value()> build) {
  if (level >= scopes.size())
    return build();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(scopes[level]);
  SmallVector<Operation *> innerScopes(scopes.begin() + level, scopes.end());
  SmallVector<std::map<Key, Value>> innerKnown(
      std::make_move_iterator(known.begin() + level + 1),
      std::make_move_iterator(known.end()));
  scopes.truncate(level);
  known.truncate(level + 1);
  Value result = build();
  llvm::append_range(scopes, innerScopes);
  for (auto &values : innerKnown)
    known.push_back(std::move(values));
  return result;
}

Value NestEmitter::evaluate(Value tensor, ArrayRef<Index> fullIndex) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  unsigned level = getLevel(index);
  Key key = getKey(tensor, index);
  // A value preset in an inner scope is found before one is built outside.
  for (auto &values : llvm::reverse(known)) {
    auto it = values.find(key);
    if (it != values.end())
      return it->second;
  }
  return atLevel(level, [&] {
    Value value = compute(tensor, index);
    known.back()[key] = value;
    return value;
  });
}

void NestEmitter::preset(Value tensor, ArrayRef<Index> fullIndex, Value value) {
  IndexList index = dropUnitDims(tensor, fullIndex);
  known.back()[getKey(tensor, index)] = value;
}

Value NestEmitter::constantI64(int64_t value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    constant = math.constantInt(builder.getI64Type(), value);
  }
  return constant;
}

Index NestEmitter::constantIndex(int64_t value, int64_t lanes) {
  if (value == 0 && lanes == 0)
    return Index();
  return Index{constantI64(value), 0, lanes, -1};
}

Index NestEmitter::addIndex(const Index &index, int64_t value) {
  if (value == 0)
    return index;
  Index result = index;
  if (!index.value) {
    result.value = constantI64(value);
    return result;
  }
  result.value = atLevel(index.level, [&]() -> Value {
    return builder.createOrFold<arith::AddIOp>(loc, index.value,
                                               constantI64(value));
  });
  return result;
}

Index NestEmitter::mulIndex(const Index &index, int64_t value) {
  if (value == 1 || !index.value)
    return index;
  Index result = index;
  result.value = atLevel(index.level, [&]() -> Value {
    return builder.createOrFold<arith::MulIOp>(loc, index.value,
                                               constantI64(value));
  });
  return result;
}

IndexList NestEmitter::delinearize(const Index &linear,
                                   ArrayRef<int64_t> sizes) {
  IndexList result(sizes.size());
  int64_t remaining = llvm::count_if(sizes, [](int64_t s) { return s > 1; });
  Index rest = linear;
  for (int64_t dim = sizes.size() - 1; dim >= 0; --dim) {
    if (sizes[dim] == 1)
      continue;
    if (--remaining == 0 || !rest.value) {
      result[dim] = rest;
      return result;
    }
    Value size = constantI64(sizes[dim]);
    result[dim] = rest;
    result[dim].value = atLevel(rest.level, [&]() -> Value {
      return builder.create<arith::RemUIOp>(loc, rest.value, size);
    });
    rest.value = atLevel(rest.level, [&]() -> Value {
      return builder.create<arith::DivUIOp>(loc, rest.value, size);
    });
  }
  return result;
}

SmallVector<Value> NestEmitter::buildLoop(Value low, Value high, int64_t step,
                                          ValueRange init, LoopBody body) {
  auto loop =
      builder.create<scf::ForOp>(loc, low, high, constantI64(step), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  scopes.push_back(loop);
  known.emplace_back();
  Index place{loop.getInductionVar(), unsigned(scopes.size()), 0, -1};
  SmallVector<Value> next = body(place, loop.getRegionIterArgs());
  if (!init.empty())
    builder.create<scf::YieldOp>(loc, next);
  scopes.pop_back();
  known.pop_back();
  return llvm::to_vector_of<Value>(loop.getResults());
}

SmallVector<Value> NestEmitter::buildCountedLoop(int64_t count, ValueRange init,
                                                 LoopBody body) {
  if (count == 1)
    return body(Index(), init);
  return buildLoop(constantI64(0), constantI64(count), 1, init, body);
}

void NestEmitter::buildIf(Value condition, llvm::function_ref<void()> body) {
  auto ifOp = builder.create<scf::IfOp>(loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
  scopes.push_back(ifOp);
  known.emplace_back();
  body();
  scopes.pop_back();
  known.pop_back();
}

void NestEmitter::buildRegion(Value condition,
                              llvm::function_ref<void()> body) {
  auto ifOp = builder.create<scf::IfOp>(loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
  body();
}

Value NestEmitter::getLaneMask(int64_t lanes) {
  SmallVector<bool> bits;
  for (int64_t lane = 0; lane < math.numLanes; ++lane)
    bits.push_back(lane < lanes);
  auto type = VectorType::get({math.numLanes}, builder.getI1Type());
  return builder.create<arith::ConstantOp>(loc,
                                           DenseElementsAttr::get(type, bits));
}

Value NestEmitter::maskLanes(Value value, int64_t lanes, Value fill) {
  if (lanes == 0 || lanes >= math.numLanes)
    return value;
  return builder.create<arith::SelectOp>(loc, getLaneMask(lanes),
                                         math.splat(value), math.splat(fill));
}

Value NestEmitter::getIdentity(ReductionKind kind, Type type) {
  if (kind == ReductionKind::Sum)
    return math.constant(type, 0.0);
  if (isa<FloatType>(type))
    return math.constant(type, -std::numeric_limits<double>::infinity());
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 1)
    return math.constantInt(type, 0);
  return math.constantInt(type, bits == 64 ? std::numeric_limits<int64_t>::min()
                                           : -(int64_t(1) << (bits - 1)));
}

Value NestEmitter::combine(ReductionKind kind, Value lhs, Value rhs) {
  return kind == ReductionKind::Sum ? math.add(lhs, rhs) : math.max(lhs, rhs);
}

Value NestEmitter::combineLanes(ReductionKind kind, Value value) {
  if (!VectorMath::isVector(value))
    return value;
  for (int64_t width = math.numLanes / 2; width >= 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(lane + width);
    }
    Value lhs = builder.create<vector::ShuffleOp>(loc, value, value, low);
    Value rhs = builder.create<vector::ShuffleOp>(loc, value, value, high);
    value = combine(kind, lhs, rhs);
  }
  return getFirstLane(value);
}

Value NestEmitter::getFirstLane(Value value) {
  return builder.create<vector::ExtractOp>(loc, value, int64_t(0));
}

} // namespace shardc
