//===- MicrobatchLoop.cpp - Gradient accumulation in JAX loops ------------===//

#include "MicrobatchLoop.h"
#include "OpaqueText.h"

#include "shardc/Analysis/BatchRows.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;
using namespace shardc;

MicrobatchLoop::MicrobatchLoop(Lowering &lowering, Operation *op,
                               ArrayRef<Value> carried)
    : lowering(lowering), op(op), carried(carried), counters(carried.size()) {}

MicrobatchLoop::~MicrobatchLoop() { discardBody(); }

void MicrobatchLoop::discardBody() {
  slices.clear();
  sums.clear();
  if (!body)
    return;
  body->dropAllReferences();
  body->dropAllDefinedValueUses();
  body.reset();
}

bool MicrobatchLoop::refuse(const Twine &why) {
  reason = why.str();
  return false;
}

/// Finds what counts the trips, from 0 up to a constant.
bool MicrobatchLoop::matchTrips() {
  Block &condition = op->getRegion(0).front();
  Operation *end = &condition.back();
  Operation *test =
      end->getNumOperands() == 1 ? end->getOperand(0).getDefiningOp() : nullptr;
  if (!test || test->getName().getStringRef() != "stablehlo.compare" ||
      test->getNumOperands() != 2 ||
      getLastWord(test->getAttr("comparison_direction")) != "LT")
    return false;
  auto argument = dyn_cast<BlockArgument>(test->getOperand(0));
  if (!argument || argument.getOwner() != &condition)
    return false;
  unsigned counter = argument.getArgNumber();
  Type boolean = RankedTensorType::get({}, lowering.getBuilder().getI1Type());
  SmallVector<Value> results;
  if (failed(
          lowering.runRegion(op, op->getRegion(0), carried, boolean, results)))
    return false;
  std::optional<int64_t> first = getConstantInteger(carried[counter]),
                         last = getConstantInteger(lowering.get(test, 1));
  if (first != 0 || !last || *last < 2)
    return false;
  count = *last;
  counters[counter] = 0;
  return true;
}

/// Finds more values that count the trips, such as that of lax.fori_loop.
/// Returns whether there are any.
bool MicrobatchLoop::findCounters(ArrayRef<Value> results) {
  bool isAny = false;
  for (auto [index, next] : llvm::enumerate(results)) {
    auto sum = next.getDefiningOp<AddOp>();
    std::optional<int64_t> first = getConstantInteger(carried[index]);
    if (!sum || !first || counters[index] ||
        sum.getLhs() != before.getArgument(index) ||
        getConstantInteger(sum.getRhs()) != 1)
      continue;
    counters[index] = first;
    isAny = true;
  }
  return isAny;
}

/// Whether each trip hands on the carried value `index` as it is.
bool MicrobatchLoop::isInvariant(unsigned index) const {
  Block &block = op->getRegion(1).front();
  return block.back().getNumOperands() == op->getNumOperands() &&
         block.back().getOperand(index) == block.getArgument(index);
}

bool MicrobatchLoop::isOutside(Value value) const {
  return value.getParentBlock() != body.get() &&
         value.getParentBlock() != &before;
}

Value MicrobatchLoop::getArgument(Value whole) {
  for (const Slice &slice : slices)
    if (slice.whole == whole)
      return slice.argument;
  RankedTensorType type = getTensorType(whole);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] /= count;
  slices.push_back(
      {whole, body->addArgument(type.clone(shape), whole.getLoc())});
  return slices.back().argument;
}

/// n if `value` is n times the number of the trip.
std::optional<int64_t> MicrobatchLoop::matchMultiple(Value value) const {
  if (value == trip)
    return 1;
  if (value.getParentBlock() != body.get() || !value.getDefiningOp())
    return std::nullopt;
  if (auto reshape = value.getDefiningOp<ReshapeOp>())
    return matchMultiple(reshape.getOperand());
  if (auto convert = value.getDefiningOp<ConvertOp>())
    return matchMultiple(convert.getOperand());
  if (auto product = value.getDefiningOp<MulOp>())
    for (auto [x, y] : {std::pair(product.getLhs(), product.getRhs()),
                        std::pair(product.getRhs(), product.getLhs())})
      if (auto times = getConstantInteger(y); times && *times > 0)
        if (auto inner = matchMultiple(x))
          return *inner * *times;
  // Python's indices: i < 0 ? i + n : i.
  if (auto select = value.getDefiningOp<SelectOp>())
    if (auto test = select->getOperand(0).getDefiningOp<CompareOp>())
      if (test.getKind() == CompareKind::LT &&
          getConstantInteger(test->getOperand(1)) == 0 &&
          matchMultiple(test->getOperand(0)))
        return matchMultiple(select->getOperand(2));
  return std::nullopt;
}

Value MicrobatchLoop::takeSlice(Location loc, Value x, ValueRange starts,
                                ArrayRef<int64_t> sizes) {
  RankedTensorType type = getTensorType(x);
  if (sizes.empty() || sizes[0] * count != type.getDimSize(0) ||
      sizes.drop_front() != type.getShape().drop_front() || !isOutside(x) ||
      matchMultiple(starts[0]) != sizes[0])
    return {};
  // Microbatches have a dimension of their own.
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = sizes[0];
  shape.insert(shape.begin(), count);
  if (sizes[0] > 1) {
    OpBuilder::InsertionGuard guard(lowering.getBuilder());
    if (Operation *maker = x.getDefiningOp())
      lowering.getBuilder().setInsertionPointAfter(maker);
    else
      lowering.getBuilder().setInsertionPointToStart(x.getParentBlock());
    x = lowering.reshape(loc, x, type.clone(shape));
    return lowering.reshape(loc, getArgument(x), type.clone(sizes));
  }
  return getArgument(x);
}

Value MicrobatchLoop::putSlice(Location loc, Value x, Value update,
                               ValueRange starts) {
  auto argument = dyn_cast<BlockArgument>(x);
  ArrayRef<int64_t> sizes = getTensorShape(update);
  if (!argument || argument.getOwner() != &before || sizes.empty() ||
      sizes[0] != 1 || getTensorShape(x)[0] != count ||
      sizes.drop_front() != getTensorShape(x).drop_front() ||
      matchMultiple(starts[0]) != 1 ||
      matchSplat(carried[argument.getArgNumber()]) != 0)
    return {};
  OpBuilder &builder = lowering.getBuilder();
  return builder.create<AddOp>(
      loc, x,
      builder.create<ScatterRowsOp>(loc, x.getType(), update,
                                    static_cast<uint64_t>(count)));
}

/// Lowers the body into a block, with the number of the trip as its argument.
bool MicrobatchLoop::lowerBody(SmallVectorImpl<Value> &results) {
  OpBuilder &builder = lowering.getBuilder();
  discardBody();
  auto type = RankedTensorType::get({}, builder.getI32Type());
  Value numbers = lowering.count(op->getLoc(), type.clone({count}), 0);
  OpBuilder::InsertionGuard guard(builder);
  body = std::make_unique<Block>();
  builder.setInsertionPointToEnd(body.get());
  trip = lowering.reshape(op->getLoc(), getArgument(numbers), type);
  arguments.clear();
  before.eraseArguments(0, before.getNumArguments());
  for (auto [index, value] : llvm::enumerate(carried)) {
    Value placeholder = before.addArgument(value.getType(), value.getLoc());
    if (counters[index]) {
      Value number = convertTo(builder, op->getLoc(), trip,
                               getTensorType(value).getElementType());
      Arithmetic a(builder, op->getLoc(), number);
      if (int64_t first = *counters[index])
        number = a.add(number, a.constant(static_cast<double>(first)));
      placeholder = number;
    }
    arguments.push_back(isInvariant(index) ? value : placeholder);
  }
  // What cannot be lowered may be once the trips are written out.
  ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic &each) {
    if (each.getSeverity() == DiagnosticSeverity::Error && reason.empty())
      reason = each.str();
    return success();
  });
  lowering.setLoop(this);
  LogicalResult lowered = lowering.runRegion(op, op->getRegion(1), arguments,
                                             op->getResultTypes(), results);
  lowering.setLoop(nullptr);
  return succeeded(lowered);
}

/// `value` + summand in `body`: the summand, or null.
static Value matchSummand(BlockArgument value, Value next) {
  auto sum = next.getDefiningOp<AddOp>();
  if (!sum || !value.hasOneUse() || *value.user_begin() != sum)
    return {};
  return sum.getLhs() == value ? sum.getRhs() : sum.getLhs();
}

/// Finds the sums among what the body makes of the carried values.
bool MicrobatchLoop::matchSums(ArrayRef<Value> results) {
  SmallVector<unsigned> others;
  for (auto [index, next] : llvm::enumerate(results)) {
    if (isInvariant(index))
      continue;
    if (counters[index]) {
      auto sum = next.getDefiningOp<AddOp>();
      if (!sum || sum.getLhs() != arguments[index] ||
          getConstantInteger(sum.getRhs()) != 1)
        return false;
      continue;
    }
    // A constraint of the sum is one of the summand.
    auto constraint = next.getDefiningOp<ShardingConstraintOp>();
    BlockArgument value = before.getArgument(index);
    Value summand =
        matchSummand(value, constraint ? constraint.getOperand() : next);
    if (!summand) {
      others.push_back(index);
      continue;
    }
    if (constraint) {
      constraint.getOperand().replaceAllUsesExcept(summand, constraint);
      constraint->setOperand(0, summand);
      summand = constraint;
    }
    auto placed = summand.getDefiningOp<ScatterRowsOp>();
    if (placed && getTensorType(placed.getOperand()).getNumElements() > 1)
      return refuse("it keeps a tensor of each trip, as value " + Twine(index) +
                    " that it carries: take gradients inside of the loop, and "
                    "carry sums");
    sums.push_back(
        {op->getResult(index), carried[index], summand, placed != nullptr});
  }
  if (sums.empty())
    return false;
  if (!others.empty())
    return refuse("value " + Twine(others.front()) +
                  " that it carries is not the sum of itself and of what a "
                  "trip makes");
  return true;
}

/// The input of the step that `value` is made of, element by element; or null.
static BlockArgument findInput(Value value) {
  while (Operation *maker = value.getDefiningOp()) {
    Value next;
    for (Value operand : maker->getOperands()) {
      if (operand.getDefiningOp<ConstantOp>())
        continue;
      if (next)
        return {};
      next = operand;
    }
    if (!next)
      return {};
    value = next;
  }
  auto argument = cast<BlockArgument>(value);
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  bool isData = function && isa_and_nonnull<InputAttr, LabelAttr>(
                                getRole(function, argument.getArgNumber()));
  return isData ? argument : BlockArgument();
}

/// Erases ops of the body that no summand needs.
void MicrobatchLoop::eraseDead() {
  llvm::DenseSet<Value> needed;
  for (const Sum &sum : sums)
    needed.insert(sum.summand);
  for (Operation &each :
       llvm::make_early_inc_range(llvm::reverse(body->getOperations())))
    if (each.use_empty() && llvm::none_of(each.getResults(), [&](Value value) {
          return needed.contains(value);
        }))
      each.erase();
  llvm::erase_if(slices, [&](const Slice &slice) {
    bool isDead =
        slice.argument.use_empty() && !needed.contains(slice.argument);
    if (isDead)
      body->eraseArgument(slice.argument.getArgNumber());
    return isDead;
  });
}

/// Lets the body take rows of the batch, of which the slices are parts in
/// order: 4x8x16 that is a reshape of 32x16.
bool MicrobatchLoop::cutRows() {
  for (Slice &slice : slices) {
    auto reshape = slice.whole.getDefiningOp<ReshapeOp>();
    ArrayRef<int64_t> shape = getTensorShape(slice.whole);
    RankedTensorType from =
        reshape ? getTensorType(reshape.getOperand()) : RankedTensorType();
    if (!from || shape.size() < 2 ||
        from.getRank() + 1 != static_cast<int64_t>(shape.size()) ||
        from.getDimSize(0) != shape[0] * shape[1] ||
        from.getShape().drop_front() != shape.drop_front(2))
      return refuse("it takes a slice of " +
                    debugString(getTensorType(slice.whole)) +
                    " by the number of the trip, which is no rows of the "
                    "batch: what becomes of a row depends on its microbatch");
    RankedTensorType sliced = getTensorType(slice.argument);
    RankedTensorType rows = from.clone(sliced.getShape().drop_front());
    slice.whole = reshape.getOperand();
    slice.argument.setType(rows);
    OpBuilder &builder = lowering.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(body.get());
    auto again = builder.create<ReshapeOp>(slice.argument.getLoc(), sliced,
                                           slice.argument);
    slice.argument.replaceAllUsesExcept(again, again);
    for (Operation *user : llvm::make_early_inc_range(again->getUsers()))
      if (isa<ReshapeOp>(user) && user->getResult(0).getType() == rows) {
        user->getResult(0).replaceAllUsesWith(slice.argument);
        for (Sum &sum : sums)
          if (sum.summand == user->getResult(0))
            sum.summand = slice.argument;
        user->erase();
      }
    if (again->use_empty())
      again->erase();
  }
  return true;
}

/// Lets no dimension of microbatches be sharded. The axes of the rows of an
/// input go to the rows of a microbatch.
void MicrobatchLoop::keepMicrobatches() {
  OpBuilder &builder = lowering.getBuilder();
  MLIRContext *context = builder.getContext();
  for (Slice &slice : slices) {
    BlockArgument input = findInput(slice.whole);
    int64_t rank = getTensorType(slice.whole).getRank();
    auto sharding =
        input ? cast<FunctionOpInterface>(input.getOwner()->getParentOp())
                    .getArgAttrOfType<ShardingAttr>(input.getArgNumber(),
                                                    shardingAttrName)
              : ShardingAttr();
    bool isSharded = sharding && !sharding.getDims().front().getAxes().empty();
    if (!isSharded || rank < 2)
      continue;
    SmallVector<DimShardingAttr> dims(
        rank, DimShardingAttr::get(context, {}, /*isClosed=*/false, {}));
    dims[0] = DimShardingAttr::get(context, {}, /*isClosed=*/true, {});
    if (slice.whole != input)
      dims[1] =
          DimShardingAttr::get(context, sharding.getDims().front().getAxes(),
                               /*isClosed=*/false, {});
    slice.whole = builder.create<ShardingConstraintOp>(
        op->getLoc(), slice.whole.getType(), slice.whole,
        ShardingAttr::get(context,
                          FlatSymbolRefAttr::get(context, importedMeshName),
                          dims, {}, {}, std::nullopt),
        ArrayAttr());
  }
}

/// Whether the sum is the same whatever rows make a microbatch.
bool MicrobatchLoop::checkRows() {
  SmallVector<BlockArgument> arguments;
  for (const Slice &slice : slices)
    arguments.push_back(slice.argument);
  std::string message;
  FailureOr<BatchRows> rows = failure();
  {
    ScopedDiagnosticHandler handler(
        lowering.getBuilder().getContext(), [&](Diagnostic &each) {
          if (each.getSeverity() == DiagnosticSeverity::Error)
            message = each.str();
          return success();
        });
    rows = BatchRows::find(*body, arguments);
  }
  if (failed(rows))
    return refuse(message);
  for (Operation *each : rows->getOps()) {
    auto iota = dyn_cast<IotaOp>(each);
    bool isNumbered =
        iota && static_cast<int64_t>(iota.getDim()) == rows->getDim(iota);
    auto constant = dyn_cast<ConstantOp>(each);
    if (isNumbered || (constant && !matchSplat(constant)))
      return refuse("what becomes of a row depends on its number");
    for (Value operand : each->getOperands())
      if (rows->getDim(operand) >= 0 && isOutside(operand) &&
          !matchSplat(operand))
        return refuse("it has a value for each row of a microbatch that is "
                      "the same in every trip");
  }
  return checkSummands(*rows);
}

/// Whether the summands are affine in sums over rows.
bool MicrobatchLoop::checkSummands(const BatchRows &rows) {
  auto isSum = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    return rows.isSum(value) || (maker && rows.needsSum(maker));
  };
  for (Operation &each : *body) {
    if (!rows.needsSum(&each))
      continue;
    auto core = dyn_cast<ShardingRuleOpInterface>(each);
    PartialRule partial =
        core ? core.getShardingRule().partial : PartialRule::Never;
    int64_t dependent = llvm::count_if(each.getOperands(), isSum);
    // Rounding to another type is not taken for a function of its own.
    bool isAffine = isa<ConvertOp>(each) || partial == PartialRule::Additive ||
                    (partial == PartialRule::Multilinear && dependent == 1) ||
                    (partial == PartialRule::FirstOperand && dependent == 1 &&
                     isSum(each.getOperand(0)));
    if (!isAffine)
      return refuse("what it adds up is not linear in sums over the rows (" +
                    each.getName().stripDialect() +
                    " of one): it depends on the rows that make a microbatch");
  }
  for (const Sum &sum : sums) {
    // What all trips leave may be added up behind the loop.
    Value summand = sum.summand;
    if (sum.isPlaced) {
      if (!llvm::all_of(sum.result.getUsers(), [](Operation *user) {
            return user->getName().getStringRef() == "stablehlo.reduce" &&
                   user->getNumRegions() == 1 &&
                   user->getRegion(0).front().getOperations().size() == 2 &&
                   user->getRegion(0)
                           .front()
                           .front()
                           .getName()
                           .getStringRef() == "stablehlo.add" &&
                   llvm::is_contained(getDims(user, "dimensions"), 0);
          }))
        return refuse("it keeps a number of each trip, of which more than the "
                      "sum is used");
      summand = summand.getDefiningOp()->getOperand(0);
    }
    if (rows.getDim(summand) >= 0)
      return refuse("it adds up rows of the batch, which belong to one "
                    "microbatch");
  }
  return true;
}

/// Builds the loop before the insertion point.
void MicrobatchLoop::build() {
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  SmallVector<Value> operands, summands;
  for (const Slice &slice : slices)
    operands.push_back(slice.whole);
  for (const Sum &sum : sums)
    summands.push_back(sum.summand);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(body.get());
    builder.create<YieldOp>(loc, summands);
  }
  auto loop =
      builder.create<AccumulateOp>(loc, ValueRange(summands).getTypes(),
                                   builder.getI64IntegerAttr(count), operands);
  loop.getBody().push_back(body.release());
  for (auto [sum, result] : llvm::zip_equal(sums, loop.getResults())) {
    Value value = result;
    RankedTensorType type = getTensorType(sum.result);
    if (value.getType() != type) {
      // All of the sum in place of the first summand.
      SmallVector<int64_t> none(type.getRank(), 0);
      value = builder.create<PadOp>(loc, type, value, none, none,
                                    llvm::APFloat(0.0));
    }
    if (matchSplat(sum.initial) != 0)
      value = builder.create<AddOp>(loc, sum.initial, value);
    lowering.set(sum.result, value);
  }
  for (auto [index, value] : llvm::enumerate(carried)) {
    if (isInvariant(index))
      lowering.set(op->getResult(index), value);
    else if (counters[index])
      lowering.set(
          op->getResult(index),
          constantSplat(builder, loc, getTensorType(value),
                        static_cast<double>(*counters[index] + count)));
  }
}

/// Lowers the body and finds its sums; whether the loop is one over data.
bool MicrobatchLoop::match() {
  SmallVector<Value> results;
  bool isLowered = lowerBody(results);
  if (isLowered && findCounters(results))
    isLowered = lowerBody(results);
  if (!isLowered || !matchSums(results))
    return false;
  eraseDead();
  return true;
}

bool MicrobatchLoop::lower() {
  if (!matchTrips())
    return false;
  bool isMatched = match();
  auto isOf = [&](bool isMade) {
    return llvm::any_of(slices, [&](const Slice &slice) {
      return findInput(slice.whole) &&
             (isMade || !isa<BlockArgument>(slice.whole));
    });
  };
  if (!isOf(/*isMade=*/true))
    return false;
  bool isOfRows = isMatched && isOf(/*isMade=*/false);
  if (isOfRows && cutRows() && checkRows()) {
    for (Sum &sum : sums)
      if (sum.isPlaced)
        sum.summand = sum.summand.getDefiningOp()->getOperand(0);
  } else if (isMatched) {
    if (isOfRows) {
      emitRemark(op->getLoc())
          << "rows move to make the microbatches of this loop, which are not "
             "rows that one device has: "
          << reason;
      match();
    }
    keepMicrobatches();
  }
  if (isMatched) {
    eraseDead();
    build();
    return true;
  }
  if (!reason.empty())
    emitRemark(op->getLoc())
        << "this loop over slices of the data is written out, " << count
        << " times, instead of being a loop over microbatches: " << reason;
  return false;
}
