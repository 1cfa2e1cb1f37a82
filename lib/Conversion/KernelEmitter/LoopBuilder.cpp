//===- LoopBuilder.cpp - Loops, and code at its outermost level -----------===//

#include "shardc/Conversion/KernelEmitter/LoopBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc {

LoopBuilder::LoopBuilder(OpBuilder &builder, Location loc, Block *entry)
    : builder(builder), loc(loc), math(this->builder, loc, /*numLanes=*/1),
      entry(entry) {
  known.resize(1);
}

void LoopBuilder::startNest(int64_t numLanes) {
  math.numLanes = numLanes;
  known.clear();
  known.resize(1);
  scopes.clear();
}

Value LoopBuilder::constantI64(int64_t value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entry);
    constant = math.constantInt(builder.getI64Type(), value);
  }
  return constant;
}

Index LoopBuilder::constantIndex(int64_t value, int64_t lanes) {
  if (value == 0 && lanes == 0)
    return Index();
  return Index{constantI64(value), 0, lanes, -1};
}

Index LoopBuilder::addIndex(const Index &index, int64_t value) {
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

Index LoopBuilder::mulIndex(const Index &index, int64_t value) {
  if (value == 1 || !index.value)
    return index;
  Index result = index;
  result.value = atLevel(index.level, [&]() -> Value {
    return builder.createOrFold<arith::MulIOp>(loc, index.value,
                                               constantI64(value));
  });
  return result;
}

IndexList LoopBuilder::delinearize(const Index &linear,
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

Value LoopBuilder::getPlaces(const Index &index) {
  Value base = index.value ? index.value : constantI64(0);
  if (!index.lanes)
    return base;
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < math.numLanes; ++lane)
    lanes.push_back(index.getOffset(lane));
  auto type = VectorType::get({math.numLanes}, builder.getI64Type());
  Value offsets = builder.create<arith::ConstantOp>(
      loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(lanes)));
  return math.add(math.splat(base), offsets);
}

SmallVector<Value> LoopBuilder::buildLoop(Value low, Value high, int64_t step,
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

SmallVector<Value> LoopBuilder::buildCountedLoop(int64_t count, ValueRange init,
                                                 LoopBody body) {
  if (count == 1)
    return body(Index(), init);
  return buildLoop(constantI64(0), constantI64(count), 1, init, body);
}

void LoopBuilder::buildIf(Value condition, llvm::function_ref<void()> body) {
  auto ifOp = builder.create<scf::IfOp>(loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
  scopes.push_back(ifOp);
  known.emplace_back();
  body();
  scopes.pop_back();
  known.pop_back();
}

void LoopBuilder::buildRegion(Value condition,
                              llvm::function_ref<void()> body) {
  auto ifOp = builder.create<scf::IfOp>(loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&ifOp.getThenRegion().front());
  body();
}

Value LoopBuilder::atLevel(unsigned level, llvm::function_ref<Value()> build) {
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

Value LoopBuilder::find(const Key &key) const {
  for (auto &values : llvm::reverse(known)) {
    auto it = values.find(key);
    if (it != values.end())
      return it->second;
  }
  return nullptr;
}

} // namespace shardc
