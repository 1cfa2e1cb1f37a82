//===- MemoryReport.cpp - The use of a device's memory --------------------===//

#include "shardc/Report/MemoryReport.h"

#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace shardc {

StringRef toString(MemoryKind kind) {
  static constexpr StringRef names[] = {"parameters", "gradients",
                                        "optimizer",  "activations",
                                        "inputs",     "workspace"};
  return names[size_t(kind)];
}

static int64_t getOffset(func::FuncOp function, Value value);

/// The values that an op of the update reads: directly, through collectives, or
/// as sums to which others are added in their place.
static llvm::DenseSet<Value> findReadByUpdate(func::FuncOp function) {
  llvm::DenseSet<Value> found;
  auto isRead = [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isPart(user, Part::Update))
      return true;
    Value value = use.get();
    if (auto start = dyn_cast<CollectiveStartOp>(user))
      return !isa<SendOp>(start.getCollective()) &&
             found.contains(start.getWait()->getResult(use.getOperandNumber()));
    return isa<KernelOp, GemmOp>(user) &&
           llvm::any_of(user->getResults(), [&](OpResult result) {
             return found.contains(result) &&
                    result.getType() == value.getType() &&
                    getOffset(function, result) == getOffset(function, value);
           });
  };
  for (Block *block : getBlocks(function))
    for (Operation &op : llvm::reverse(*block))
      for (OpResult result : op.getResults())
        if (llvm::any_of(result.getUses(), isRead))
          found.insert(result);
  return found;
}

/// Whether the value is the next sum of a loop, which has the place of the
/// last.
static bool isNextSum(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<YieldOp>(user) && isa<AccumulateOp>(user->getParentOp());
  });
}

static MemoryKind classify(Value value, bool isReadByUpdate) {
  Operation *op = value.getDefiningOp();
  if (isReadByUpdate && !isPart(op, Part::Forward))
    return MemoryKind::Gradients;
  if (isPart(op, Part::Forward))
    return MemoryKind::Activations;
  return MemoryKind::Workspace;
}

std::string getComputedName(OpResult value) {
  Operation *op = value.getOwner();
  if (auto wait = dyn_cast<CollectiveWaitOp>(op))
    op = wait.getStart().getCollective();
  StringRef what = op->getName().stripDialect();
  if (auto kernel = dyn_cast<KernelOp>(op)) {
    Operation *def = kernel.getBody()
                         .front()
                         .getTerminator()
                         ->getOperand(value.getResultNumber())
                         .getDefiningOp();
    if (def)
      what = def->getName().stripDialect();
  }
  return what.str();
}

static MemoryBuffer describeArgument(func::FuncOp function,
                                     BlockArgument argument) {
  MemoryBuffer buffer;
  buffer.bytes = alignBytes(getNumBytes(argument.getType()));
  Attribute role = function.getArgAttr(argument.getArgNumber(), roleAttrName);
  if (auto parameter = dyn_cast_or_null<ParameterAttr>(role)) {
    buffer.name = parameter.getName().str();
    buffer.kind = MemoryKind::Parameters;
  } else if (auto state = dyn_cast_or_null<StateAttr>(role)) {
    buffer.name = state.getName().str();
    buffer.kind = MemoryKind::OptimizerStates;
  } else if (auto copy = dyn_cast_or_null<CopyAttr>(role)) {
    buffer.name = copy.getName().str();
    buffer.kind = MemoryKind::Parameters;
  } else if (auto input = dyn_cast_or_null<InputAttr>(role)) {
    buffer.name = input.getName().str();
    buffer.kind = MemoryKind::Inputs;
  } else if (auto label = dyn_cast_or_null<LabelAttr>(role)) {
    buffer.name = label.getName().str();
    buffer.kind = MemoryKind::Inputs;
  }
  return buffer;
}

static int64_t getOffset(func::FuncOp function, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    // In a loop the first rows of an operand, or the place of a result.
    if (auto loop =
            dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp())) {
      size_t number = argument.getArgNumber(), slices = loop.getSlices().size();
      return getOffset(function, number < slices
                                     ? loop.getOperands()[number]
                                     : Value(loop.getResult(number - slices)));
    }
    auto offset = function.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(), offsetAttrName);
    return offset ? offset.getInt() : 0;
  }
  auto result = cast<OpResult>(value);
  auto offsets =
      result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName);
  return offsets ? offsets[result.getResultNumber()] : 0;
}

/// The number of regions that `values`, in order, make up.
static unsigned countRegions(func::FuncOp function, ValueRange values) {
  unsigned regions = 0;
  int64_t end = -1;
  for (Value value : values) {
    int64_t offset = getOffset(function, value);
    regions += offset != end;
    end = offset + alignBytes(getNumBytes(value.getType()));
  }
  return regions;
}

static std::vector<MemoryBucket> findBuckets(func::FuncOp function) {
  std::vector<MemoryBucket> buckets;
  unsigned number = 0;
  function.walk([&](CollectiveStartOp start) {
    // The sender counts it.
    if (isa<ReceiveOp>(start.getCollective()))
      return;
    if (start.getNumOperands() > 1)
      buckets.push_back({number, start.getNumOperands(),
                         countRegions(function, start.getOperands()),
                         countRegions(function, start.getWait().getResults())});
    ++number;
  });
  return buckets;
}

/// Bytes of the arena that `op` has an attribute for; 0 without.
static int64_t getArenaBytes(Operation *op) {
  auto arena = op->getAttrOfType<IntegerAttr>(arenaBytesAttrName);
  return arena ? arena.getInt() : 0;
}

/// The train step; with a pipeline that of the first rank with the largest
/// arena. Null without functions.
static func::FuncOp getReportedStep(ModuleOp module) {
  func::FuncOp step = getStep(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (getProgramName(function) == "train_step" &&
        getArenaBytes(function) > getArenaBytes(step))
      step = function;
  return step;
}

MemoryReport::MemoryReport(ModuleOp module)
    : MemoryReport(getReportedStep(module), shardc::getArenaBytes(module)) {}

MemoryReport::MemoryReport(func::FuncOp function, int64_t arenaBytes)
    : arenaBytes(arenaBytes) {
  if (!function)
    return;
  buckets = findBuckets(function);
  Liveness liveness(function);
  llvm::DenseSet<Value> readByUpdate = findReadByUpdate(function);
  // One entry per place in use, under the name of its first value.
  struct Place {
    int64_t offset, first, last;
    MemoryBuffer buffer;
  };
  std::vector<Place> places;
  llvm::DenseMap<int64_t, SmallVector<size_t, 1>> placesAt;
  llvm::DenseSet<int64_t> argumentOffsets;
  for (BlockArgument argument : function.getArguments()) {
    int64_t offset = getOffset(function, argument);
    argumentOffsets.insert(offset);
    places.push_back({offset, -1, liveness.getNumSteps(),
                      describeArgument(function, argument)});
  }
  SmallVector<Value> results;
  for (Block *block : getBlocks(function))
    for (Operation &op : *block)
      if (!isa<CollectiveStartOp, RowsOp>(op))
        llvm::append_range(results, op.getResults());
  llvm::stable_sort(results, [&](Value lhs, Value rhs) {
    return liveness.getFirst(lhs) < liveness.getFirst(rhs);
  });
  for (Value value : results) {
    auto result = cast<OpResult>(value);
    int64_t offset = getOffset(function, result);
    if (argumentOffsets.contains(offset) || isNextSum(result))
      continue;
    Place place{
        offset, liveness.getFirst(result), liveness.getLast(result), {}};
    place.buffer.name = getComputedName(result);
    place.buffer.bytes = alignBytes(getNumBytes(result.getType()));
    place.buffer.kind = classify(result, readByUpdate.contains(result));
    place.buffer.source = getSourceString(getComputingOp(result)->getLoc());
    // Written over an operand: both are one buffer from there on.
    for (size_t index : placesAt[offset])
      if (Place &other = places[index];
          other.last >= place.first && other.buffer.bytes == place.buffer.bytes)
        other.last = place.first - 1;
    placesAt[offset].push_back(places.size());
    places.push_back(std::move(place));
  }
  // By step, the bytes that become live less those that end; from before the
  // first step.
  std::vector<int64_t> changes(liveness.getNumSteps() + 2);
  for (const Place &place : places)
    if (place.first <= place.last) {
      changes[place.first + 1] += place.buffer.bytes;
      changes[std::min(place.last + 2, liveness.getNumSteps() + 1)] -=
          place.buffer.bytes;
    }
  numSteps = liveness.getNumSteps();
  int64_t peak = -1, alive = changes.front();
  for (int64_t step = 0; step < numSteps; ++step) {
    alive += changes[step + 1];
    if (alive > peak) {
      peak = alive;
      peakStep = step;
    }
  }
  for (Place &place : places) {
    if (place.first > place.last)
      continue;
    if (place.first <= peakStep && peakStep <= place.last) {
      bytes[size_t(place.buffer.kind)] += place.buffer.bytes;
      largest.push_back(place.buffer);
    }
    lifetimes.push_back({std::move(place.buffer),
                         std::max<int64_t>(place.first, 0),
                         std::min(place.last, numSteps - 1)});
  }
  bytes[size_t(MemoryKind::Workspace)] +=
      std::max<int64_t>(0, arenaBytes - std::max<int64_t>(peak, 0));
  llvm::stable_sort(largest, [](const MemoryBuffer &a, const MemoryBuffer &b) {
    return a.bytes > b.bytes;
  });
  if (largest.size() > 10)
    largest.resize(10);
}

void MemoryReport::print(llvm::raw_ostream &os) const {
  os << "Memory per device: " << arenaBytes << " bytes\n";
  for (size_t kind = 0; kind < numMemoryKinds; ++kind)
    os << llvm::format("  %-12s %14lld\n",
                       toString(MemoryKind(kind)).str().c_str(),
                       (long long)bytes[kind]);
  os << "Largest buffers at the peak:\n";
  for (const MemoryBuffer &buffer : largest)
    os << llvm::format("  %14lld  %-12s %-16s ", (long long)buffer.bytes,
                       toString(buffer.kind).str().c_str(), buffer.name.c_str())
       << buffer.source << "\n";
}

llvm::json::Object MemoryReport::toJson() const {
  llvm::json::Object object;
  object["peak_bytes_per_device"] = arenaBytes;
  for (size_t kind = 0; kind < numMemoryKinds; ++kind)
    object[toString(MemoryKind(kind))] = bytes[kind];
  llvm::json::Array list;
  for (const MemoryBuffer &buffer : largest)
    list.push_back(llvm::json::Object{{"name", buffer.name},
                                      {"bytes", buffer.bytes},
                                      {"kind", toString(buffer.kind)},
                                      {"source", buffer.source}});
  object["largest"] = std::move(list);
  llvm::json::Array bucketList;
  for (const MemoryBucket &bucket : buckets)
    bucketList.push_back(
        llvm::json::Object{{"collective", bucket.collective},
                           {"tensors", bucket.tensors},
                           {"operand_regions", bucket.operandRegions},
                           {"result_regions", bucket.resultRegions}});
  object["buckets"] = std::move(bucketList);
  return object;
}

void attachLargest(mlir::InFlightDiagnostic &error,
                   const MemoryReport &report) {
  for (const MemoryBuffer &buffer : report.getLargest())
    error.attachNote() << buffer.name << ": " << buffer.bytes << " bytes of "
                       << toString(buffer.kind)
                       << (buffer.source.empty() ? "" : " at ")
                       << buffer.source;
}

} // namespace shardc
