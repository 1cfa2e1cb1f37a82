//===- Lowering.cpp - From ops of StableHLO to the tensor core ------------===//

#include "Lowering.h"
#include "SignlessIntegers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringMap.h"

#include <utility>

using namespace mlir;
using namespace shardc;

using LoweringTable = llvm::StringMap<OpLowering>;

static const LoweringTable &getTable() {
  static const LoweringTable table = [] {
    LoweringTable all;
    for (ArrayRef<OpLowering> part :
         {getElementwiseLowerings(), getBitLowerings(), getShapeLowerings(),
          getReduceLowerings(), getSliceLowerings(), getIndexLowerings(),
          getScatterLowerings(), getSortLowerings(), getControlLowerings(),
          getCallLowerings()})
      for (const OpLowering &each : part)
        all.try_emplace(each.name, each);
    return all;
  }();
  return table;
}

static const LoweringTable &getUnsignedTable() {
  static const LoweringTable table = [] {
    LoweringTable all;
    for (const OpLowering &each : getUnsignedLowerings())
      all.try_emplace(each.name, each);
    return all;
  }();
  return table;
}

/// The lowering of `op`; null if it has none.
static const OpLowering *findLowering(Operation *op) {
  StringRef name = op->getName().getStringRef();
  for (const LoweringTable *table : {&getUnsignedTable(), &getTable()}) {
    if (table == &getUnsignedTable() && !isUnsigned(op))
      continue;
    if (auto entry = table->find(name); entry != table->end())
      return &entry->second;
  }
  return nullptr;
}

std::optional<StringRef> shardc::findScope(Location loc, StringRef prefix) {
  std::optional<StringRef> found;
  loc->walk([&](Location each) {
    auto name = dyn_cast<NameLoc>(each);
    StringRef text = name ? name.getName().getValue() : "";
    size_t at = text.find(prefix);
    if (at == StringRef::npos)
      return WalkResult::advance();
    found = text.drop_front(at + prefix.size()).split('/').first;
    return WalkResult::interrupt();
  });
  return found;
}

/// `name`, and what a call of another library calls.
static std::string describe(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  auto target = op->getAttrOfType<StringAttr>("call_target_name");
  return target ? name + " of " + target.getValue().str() : name;
}

/// What to write in place of an op that is not supported.
static StringRef getAdvice(Operation *op) {
  StringRef name = op->getName().getStringRef();
  auto target = op->getAttrOfType<StringAttr>("call_target_name");
  // jax.debug.print, jax.pure_callback and their like.
  if (target && target.getValue().contains("callback"))
    return "Python is not called from a step; return the value as one more "
           "result of it";
  static const struct {
    StringLiteral name, advice;
  } advices[] = {
      {"stablehlo.rng_bit_generator", "feed the random numbers as an input"},
      {"stablehlo.convolution", "use @ or jnp.einsum; shardc is for MLPs"},
      {"sdy.manual_computation",
       "export the function by shardc.jax, which writes shard_map out"},
      {"stablehlo.custom_call",
       "use @, jnp.einsum and the elementwise ops and sums of jax.numpy and "
       "jax.nn; decompositions such as those of jnp.linalg are not there"},
  };
  for (const auto &each : advices)
    if (each.name == name)
      return each.advice;
  return "docs/JAX.md lists the ops that are";
}

/// What to write in place of elements of a type that is not supported.
static StringRef getAdvice(Type element) {
  if (isa<ComplexType>(element))
    return "use real numbers, as a pair of arrays";
  if (isa<FloatType>(element))
    return "use jnp.bfloat16 or jnp.float32";
  return "use jnp.int32, or jnp.float32 where they are features";
}

LogicalResult shardc::checkElements(Location loc, const llvm::Twine &what,
                                    Type type) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF32() || element.isBF16() || element.isF64() ||
      element.isSignlessInteger(32) || element.isSignlessInteger(64) ||
      element.isSignlessInteger(1))
    return success();
  return emitError(loc) << what << " elements of " << element
                        << ", which are not supported; expected float32, "
                           "bfloat16, float64, int32, int64, uint32, uint64 "
                           "or bool: "
                        << getAdvice(element);
}

/// Whether the tensors of shardc have the type of each result.
static LogicalResult checkTypes(Operation *op) {
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return emitError(op->getLoc()) << op->getName() << " gives " << type
                                     << ", expected tensors of static shape";
    if (failed(checkElements(op->getLoc(),
                             op->getName().getStringRef() + " gives", tensor)))
      return failure();
  }
  return success();
}

/// Whether the op has the operands, results and regions that its lowering
/// reads.
static LogicalResult checkForm(Operation *op, const OpLowering &lowering) {
  bool isRight = llvm::all_of(op->getOperandTypes(), [](Type type) {
    return isa<RankedTensorType>(type);
  });
  if (lowering.operands >= 0)
    isRight &= static_cast<int>(op->getNumOperands()) == lowering.operands &&
               op->getNumResults() == 1;
  isRight &= (lowering.regions < 0 ||
              static_cast<int>(op->getNumRegions()) == lowering.regions) &&
             llvm::all_of(op->getRegions(), [](Region &region) {
               return region.hasOneBlock() && !region.front().empty();
             });
  if (isRight)
    return success();
  return emitError(op->getLoc())
         << op->getName() << " has operands, results or regions that do not "
         << "belong to this op";
}

/// Whether the result of `op` has no elements. Such tensors are operands of
/// concatenations, pads and reductions, which leave them out.
static bool isEmpty(Operation *op) {
  return op->getNumResults() == 1 &&
         getTensorType(op->getResult(0)).getNumElements() == 0;
}

LogicalResult Lowering::runCall(Operation *op, FlatSymbolRefAttr callee) {
  // No function of JAX calls itself.
  constexpr int mostCalls = 200;
  auto function =
      callee ? source.lookupSymbol<func::FuncOp>(callee) : func::FuncOp();
  if (!function || !function.getBody().hasOneBlock() ||
      !llvm::equal(function.getArgumentTypes(), op->getOperandTypes()) ||
      !llvm::equal(function.getResultTypes(), op->getResultTypes()) ||
      depth == mostCalls)
    return emitError(op->getLoc())
           << "calls a function of these types that the module does not have, "
              "or that calls itself";
  Block &body = function.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), op->getOperands()))
    set(argument, get(operand));
  SmallVector<Value> results;
  ++depth;
  std::optional<Location> outer = std::exchange(caller, op->getLoc());
  LogicalResult result = run(body, results);
  caller = outer;
  --depth;
  if (failed(result))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    set(result, value);
  return success();
}

LogicalResult Lowering::runRegion(Operation *op, Region &region,
                                  ValueRange arguments, TypeRange types,
                                  SmallVectorImpl<Value> &results) {
  Block &body = region.front();
  if (!llvm::equal(body.getArgumentTypes(), arguments.getTypes()) ||
      body.back().getOperandTypes() != types)
    return emitError(op->getLoc())
           << op->getName() << " has a region of other types";
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    set(argument, value);
  results.clear();
  return run(body, results);
}

LogicalResult Lowering::run(Block &block, SmallVectorImpl<Value> &results) {
  // Loops are written out.
  constexpr int64_t mostOps = 200000;
  for (Operation &op : block.without_terminator()) {
    if (++ops > mostOps)
      return emitError(op.getLoc())
             << "the program has more than " << mostOps
             << " ops once its loops are written out: make fewer trips";
    // What is inside of functions of JAX has the place of their call.
    Location own = op.getLoc();
    if (caller && !own->findInstanceOf<FileLineColLoc>())
      op.setLoc(CallSiteLoc::get(own, *caller));
    auto restore = llvm::make_scope_exit([&] { op.setLoc(own); });
    const OpLowering *lowering = findLowering(&op);
    if (!lowering)
      return emitError(op.getLoc())
             << describe(&op) << " is not supported: " << getAdvice(&op);
    if (failed(checkForm(&op, *lowering)) || failed(checkTypes(&op)))
      return failure();
    if (isEmpty(&op)) {
      Value result = op.getResult(0);
      set(result,
          constantSplat(builder, op.getLoc(), getTensorType(result), 0));
    } else if (failed(lowering->lower(*this, &op))) {
      return failure();
    }
  }
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(get(operand));
  return success();
}

Value Lowering::reshape(Location loc, Value value, RankedTensorType type) {
  while (auto op = value.getDefiningOp<ReshapeOp>())
    value = op.getOperand();
  if (value.getType() == type)
    return value;
  return builder.create<ReshapeOp>(loc, type, value);
}

Value Lowering::broadcast(Location loc, Value value, RankedTensorType type,
                          ArrayRef<int64_t> dims) {
  RankedTensorType from = getTensorType(value);
  if (from == type && llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())))
    return value;
  if (auto constant = value.getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      if (elements.isSplat())
        return builder.create<ConstantOp>(loc, elements.resizeSplat(type));
  // Dimensions of one element that are repeated are new ones.
  SmallVector<int64_t> shape, kept;
  for (auto [index, dim] : llvm::enumerate(dims))
    if (from.getDimSize(index) == type.getDimSize(dim)) {
      shape.push_back(from.getDimSize(index));
      kept.push_back(dim);
    }
  value = reshape(loc, value, from.clone(shape));
  if (!llvm::is_sorted(kept)) {
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, kept.size()));
    llvm::sort(order, [&](int64_t a, int64_t b) { return kept[a] < kept[b]; });
    SmallVector<int64_t> permuted;
    for (int64_t index : order)
      permuted.push_back(shape[index]);
    value =
        builder.create<TransposeOp>(loc, from.clone(permuted), value, order);
    llvm::sort(kept);
  }
  if (from.getNumElements() == type.getNumElements())
    return reshape(loc, value, type);
  return builder.create<BroadcastOp>(loc, type, value, kept);
}

Value Lowering::slice(Location loc, Value x, int64_t dim, int64_t from,
                      int64_t size) {
  RankedTensorType type = getTensorType(x);
  if (size == type.getDimSize(dim))
    return x;
  SmallVector<int64_t> shape(type.getShape()), starts(type.getRank(), 0);
  shape[dim] = size;
  starts[dim] = from;
  if (auto constant = x.getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue())) {
      if (elements.isSplat())
        return builder.create<ConstantOp>(
            loc, elements.resizeSplat(type.clone(shape)));
      if (type.getRank() == 1) {
        SmallVector<Attribute> values(elements.getValues<Attribute>());
        return builder.create<ConstantOp>(
            loc, DenseElementsAttr::get(type.clone(shape),
                                        ArrayRef(values).slice(from, size)));
      }
    }
  auto parts = x.getDefiningOp<ConcatenateOp>();
  if (parts && static_cast<int64_t>(parts.getDim()) == dim) {
    SmallVector<Value> taken;
    int64_t at = 0;
    for (Value part : parts.getOperands()) {
      int64_t length = getTensorType(part).getDimSize(dim);
      int64_t first = std::max(from - at, int64_t(0)),
              last = std::min(from + size - at, length);
      if (first < last)
        taken.push_back(slice(loc, part, dim, first, last - first));
      at += length;
    }
    return concatenate(loc, taken, dim);
  }
  return builder.create<ExtractSliceOp>(
      loc, type.clone(shape), x, starts,
      SmallVector<int64_t>(type.getRank(), 1));
}

Value Lowering::concatenate(Location loc, ValueRange parts, int64_t dim) {
  SmallVector<Value> flat;
  int64_t size = 0;
  for (Value part : parts) {
    if (getTensorType(part).getNumElements() == 0)
      continue;
    size += getTensorType(part).getDimSize(dim);
    auto inner = part.getDefiningOp<ConcatenateOp>();
    if (inner && static_cast<int64_t>(inner.getDim()) == dim)
      llvm::append_range(flat, inner.getOperands());
    else
      flat.push_back(part);
  }
  if (flat.size() == 1)
    return flat.front();
  RankedTensorType type = getTensorType(flat.front());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return builder.create<ConcatenateOp>(loc, type.clone(shape), flat, dim);
}

ArrayRef<int64_t> shardc::getDims(Operation *op, StringRef name) {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>(name);
  return dims ? dims.asArrayRef() : ArrayRef<int64_t>();
}
