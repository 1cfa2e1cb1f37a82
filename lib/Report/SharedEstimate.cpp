//===- SharedEstimate.cpp - Virtual devices on a measured computer --------===//

#include "SharedEstimate.h"

#include "ReuseDistances.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/GroupKernels.h"
#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Report/CommunicationReport.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

double shardc::getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return static_cast<double>(type.getNumElements() *
                             getElementBytes(type.getElementType()));
}

bool shardc::hasKernels(func::FuncOp function) {
  for (Block *block : getBlocks(function))
    for (Operation &op : *block)
      if (op.getNumRegions() == 0 && isa<ShardingRuleOpInterface>(op) &&
          !isa<GemmOp, TransferOp>(op))
        return false;
  return true;
}

/// Elements of a result, and multiply-adds, of a part that a worker has of a
/// command, about: the rules by which kernels (KernelsToCPU/NestPlan) and GEMMs
/// (runtime/src/backends/cpu/PackedGemm) are divided differ, and have been
/// compared with this on two workers alone.
static constexpr double elementsOfPart = 32, workOfPart = 1 << 11;
/// Multiply-adds that an element is worth beyond its arithmetic.
static constexpr double workOfElement = 8;

namespace {

/// Goes through a program as the runtime does, which holds one copy of a value
/// for all devices that have the same bits, and computes it once.
class SharedProgram {
public:
  SharedProgram(func::FuncOp function, const Machine &machine)
      : machine(machine), computer(*machine.computer), deviceCopies(function),
        memory(function) {
    Block &body = function.getBody().front();
    isPipeline = llvm::any_of(getBlocks(function), [](Block *block) {
      return !block->getOps<SendOp>().empty() ||
             !block->getOps<ReceiveOp>().empty();
    });
    // In the step before, everything has been accessed.
    runBlock(body, 1);
    estimate = {};
    spanOf.clear();
    runBlock(body, 1);
    estimate.overlappedSeconds = estimate.getSeconds();
    // One after the other; of a loop's body all runs together.
    double start = 0;
    for (OpSpan &span : estimate.spans) {
      span.startSeconds = start;
      start += span.seconds;
    }
  }

  TimeEstimate estimate;

private:
  AxisSet getSet(ArrayRef<StringAttr> axes) const {
    return deviceCopies.getSet(axes);
  }
  double getCopies(AxisSet axes) const {
    return static_cast<double>(deviceCopies.getCount(axes));
  }
  /// The axes along which the runtime has different copies of a value.
  AxisSet getVaries(Value value) const {
    return deviceCopies.getAxes(value) &
           ~summedOver.lookup(memory.getRoot(value));
  }

  /// The seconds of an access to `bytes` of `value`, by the bytes that have
  /// been accessed since the last one.
  double access(Value value, double bytes) {
    return bytes * computer.getSecondsPerByte(memory.access(value, bytes));
  }

  /// Other workers than the next writer have read `part` of the bytes of
  /// `value`, and hold their lines.
  void hold(Value value, double part) {
    double &held = heldByOthers[memory.getPlace(value)];
    held = std::max(held, part);
  }
  /// What writing `bytes` of `value` after `distance` bytes takes longer
  /// because others hold some of its lines.
  double takeBack(Value value, double bytes, double distance) {
    double &held = heldByOthers[memory.getPlace(value)];
    const double exchanged = held * bytes;
    held = 0;
    return computer.getExchangeSeconds(exchanged, distance);
  }

  /// The seconds of writing `copies` of `value`.
  double write(Value value, double copies) {
    const double bytes = getBytes(value) * copies;
    const double distance = memory.access(value, bytes);
    return bytes * computer.getSecondsPerByte(distance) +
           takeBack(value, bytes, distance);
  }

  /// The GEMMs that the runtime makes of those of all devices.
  struct Merged {
    double gemms, rows, columns, terms;
  };

  /// The GEMMs of `op` for `copies` copies of its factors, of which each result
  /// adds up `added`.
  Merged merge(Operation *op, const OpWork &work, double copies, double added) {
    Merged merged{copies / added, work.rows, work.columns, work.terms * added};
    auto gemm = dyn_cast<GemmOp>(op);
    if (auto kernel = dyn_cast<KernelOp>(op->getParentOp())) {
      const GroupKernel group = getGroupKernel(kernel, deviceCopies);
      if (group.sharedOperand >= 0) {
        merged.gemms /= static_cast<double>(group.devices);
        merged.columns *= static_cast<double>(group.devices);
      }
    }
    if (!gemm)
      return merged;
    // One GEMM of all rows. Those of a microbatch lie between the others of
    // their device, which the library bridges in f32.
    double ofRight = getCopies(getVaries(gemm.getRhs()));
    if (!gemm.getTransposeLhs() && added == 1 && ofRight < copies &&
        (work.computeType != ComputeType::BF16 || !isSlice(gemm.getLhs()))) {
      merged.rows *= copies / ofRight;
      merged.gemms = ofRight;
    }
    return merged;
  }

  /// Whether `value` is a part of an operand of a loop, another in each run.
  static bool isSlice(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto loop = argument
                    ? dyn_cast<AccumulateOp>(argument.getOwner()->getParentOp())
                    : AccumulateOp();
    return loop && argument.getArgNumber() < loop.getOperands().size() &&
           loop.getOperand(argument.getArgNumber()).getType() !=
               value.getType();
  }

  /// Whether the library computes `op` in a type whose GEMMs have been measured
  /// by their sides.
  bool hasMeasuredSides(Operation *op, const OpWork &work) const {
    return isa<GemmOp>(op) &&
           !machine.getShortSides(work.computeType).isEmpty();
  }

  /// The arithmetic of a GEMM in all its copies.
  double getGemmSeconds(Operation *op, const OpWork &work, const Merged &gemm) {
    OpWork one = work;
    one.flops = 2;
    one.rows = gemm.rows, one.columns = gemm.columns, one.terms = gemm.terms;
    if (hasMeasuredSides(op, work))
      return gemm.rows * gemm.columns * gemm.terms * gemm.gemms *
             shardc::getComputeSeconds(machine, one) / machine.numSharing;
    one.terms = 0;
    double least = computer.getMultiplyAdds(gemm.rows, gemm.columns, gemm.terms,
                                            /*storesPieces=*/!isa<GemmOp>(op));
    // The library may compute the transpose, and a kernel the sums of one
    // column along their terms.
    if (isa<GemmOp>(op))
      least = std::min(least, computer.getMultiplyAdds(gemm.columns, gemm.rows,
                                                       gemm.terms,
                                                       /*storesPieces=*/false));
    else if (hasLanesOverRows(op, work))
      least = computer.getMultiplyAdds(gemm.columns, gemm.rows, gemm.terms,
                                       /*storesPieces=*/true);
    else if (gemm.columns == 1)
      least =
          gemm.rows * computer.vectorLanes *
          (std::ceil(gemm.terms / computer.vectorLanes) + computer.vectorTerms);
    else if (hasPairs(op, work) && gemm.columns == work.columns)
      least = std::min(least, computer.getPairedMultiplyAdds(
                                  gemm.rows, gemm.columns, gemm.terms));
    return least * gemm.gemms * shardc::getComputeSeconds(machine, one) /
           machine.numSharing;
  }

  void runBlock(Block &block, int64_t runs) {
    for (Operation &op : block)
      runOp(&op, runs);
  }

  void runOp(Operation *op, int64_t runs) {
    memory.place(op);
    if (auto loop = dyn_cast<AccumulateOp>(op))
      return runLoop(loop);
    if (auto start = dyn_cast<CollectiveStartOp>(op)) {
      enclosing = op;
      return runOp(start.getCollective(), runs);
    }
    if (isa<CollectiveWaitOp, RowsOp>(op))
      return;
    // Between pipeline ranks of one process a message lies in one place.
    if (isa<SendOp, ReceiveOp>(op))
      return;
    if (getCollectiveCost(op)) {
      if (!isa<CollectiveStartOp>(op->getParentOp()))
        enclosing = op;
      return runCollective(op, runs);
    }
    if (isa<KernelOp, GemmOp, ZerosOp>(op)) {
      enclosing = op;
      runKernel(op, runs);
    }
  }

  void runLoop(AccumulateOp loop) {
    Block &body = loop.getBody().front();
    // They begin at zero.
    auto sums = body.getArguments().drop_front(loop.getOperands().size());
    enclosing = loop;
    for (Value result : loop.getResults())
      if (!sums.empty())
        addSpan(0, write(result, getCopies(getVaries(result))), 0, 1, 0);
    runBlock(body, 1);
    if (loop.getCount() > 1)
      runBlock(body, loop.getCount() - 1);
  }

  /// A GEMM in a kernel has lanes over the rows of a result of fewer columns
  /// than a vector has on any CPU, if rows of the left factor lie side by side
  /// (KernelsToCPU/NestPlan).
  static bool hasLanesOverRows(Operation *op, const OpWork &work) {
    constexpr double baseLanes = 8, leastTerms = 2 * baseLanes;
    auto dot = dyn_cast<DotGeneralOp>(op);
    if (!dot || work.columns >= baseLanes || work.rows <= work.columns ||
        work.terms < leastTerms)
      return false;
    int64_t last = cast<RankedTensorType>(dot.getLhs().getType()).getRank() - 1;
    return !llvm::is_contained(dot.getLhsContracting(), last);
  }

  /// A GEMM in a kernel has lanes over pairs of columns if it has few columns
  /// and the terms of its rows lie side by side (KernelsToCPU/NestPlan).
  static bool hasPairs(Operation *op, const OpWork &work) {
    constexpr double mostColumns = 6, leastTerms = 4, mostTerms = 1024;
    auto dot = dyn_cast<DotGeneralOp>(op);
    if (!dot || work.computeType != ComputeType::F32 || work.columns < 2 ||
        work.columns > mostColumns || work.terms < leastTerms ||
        work.terms > mostTerms || work.rows < (work.columns <= 2 ? 16 : 8))
      return false;
    int64_t last = cast<RankedTensorType>(dot.getLhs().getType()).getRank() - 1;
    return dot.getLhsContracting() == ArrayRef<int64_t>(last);
  }

  /// Whether the sum of such GEMMs of several devices may be one of them.
  static bool canAdd(GemmOp gemm) {
    return !gemm.getBias() && !gemm.getRelu() && !gemm.getColumnSums() &&
           getElementTypeOrSelf(gemm.getResult().getType()).isF32();
  }

  /// Whether what `gemm` adds to is zero but for such GEMMs.
  static bool beginsAtZero(GemmOp gemm) {
    for (Value sum = gemm.getSum(); sum; sum = gemm.getSum()) {
      if (!sum.hasOneUse())
        return false;
      if (isa<BlockArgument>(sum))
        return isa<AccumulateOp>(sum.getParentBlock()->getParentOp());
      if (sum.getDefiningOp<ZerosOp>())
        return true;
      gemm = sum.getDefiningOp<GemmOp>();
      if (!gemm || !canAdd(gemm))
        return false;
    }
    return true;
  }

  /// The result of `gemm`, or what further GEMMs and the runs of its loop make
  /// of it by adding to it; null if they do more.
  static Value getTotal(GemmOp gemm) {
    Value sum = gemm.getResult();
    while (sum.hasOneUse()) {
      OpOperand &use = *sum.use_begin();
      auto loop = dyn_cast<AccumulateOp>(use.getOwner()->getParentOp());
      if (auto next = dyn_cast<GemmOp>(use.getOwner())) {
        if (next.getSum() != sum || !canAdd(next))
          return Value();
        sum = next.getResult();
      } else if (loop && isa<YieldOp>(use.getOwner())) {
        sum = loop.getResult(use.getOperandNumber());
      } else {
        return sum;
      }
    }
    return Value();
  }

  /// The axes over which the results of a GEMM are added up in the GEMM: of
  /// what it adds to one reduction alone reads the total.
  AxisSet getSummedAxes(Operation *op) const {
    if (auto kernel = dyn_cast<KernelOp>(op)) {
      Operation *sum = getGroupKernel(kernel, deviceCopies).addsUp()
                           ? getSumOverDevices(kernel.getResult(0))
                           : nullptr;
      return sum ? getSet(getMovedAxes(sum)) : 0;
    }
    auto gemm = dyn_cast<GemmOp>(op);
    if (!gemm || !canAdd(gemm) || !beginsAtZero(gemm))
      return 0;
    Value total = getTotal(gemm);
    if (!total)
      return 0;
    Operation *user = *total.user_begin();
    if (auto start = dyn_cast<CollectiveStartOp>(user))
      user = start.getCollective();
    auto reduce = dyn_cast<AllReduceOp>(user);
    if ((reduce && reduce.getKind() == ReductionKind::Sum) ||
        isa<ReduceScatterOp>(user))
      return getSet(getMovedAxes(user));
    return 0;
  }

  /// How much longer `op` takes because `copies` copies of its results, of
  /// `work` multiply-adds each, do not divide among all workers.
  double getIdleFactor(Operation *op, double copies, double work) const {
    double elements = 1;
    for (Value result : op->getResults())
      elements = std::max(
          elements,
          static_cast<double>(
              cast<RankedTensorType>(result.getType()).getNumElements()));
    double parts = std::min(elements / elementsOfPart, work / workOfPart);
    // A matrix of a batch is not divided.
    op->walk([&](DotGeneralOp dot) {
      double batch = 1;
      for (int64_t dim : dot.getLhsBatching())
        batch *= cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dim);
      if (batch > 1)
        parts = std::min(parts, batch);
    });
    return computer.workers /
           std::min(computer.workers,
                    copies * std::max(1.0, std::floor(parts)));
  }

  void runKernel(Operation *op, int64_t runs) {
    AxisSet axes = 0;
    for (Value result : op->getResults())
      axes |= deviceCopies.getAxes(result);
    const double copies = getCopies(axes);
    const AxisSet summed = getSummedAxes(op) & axes;
    if (summed) {
      auto gemm = dyn_cast<GemmOp>(op);
      Value total = memory.getRoot(gemm ? getTotal(gemm) : op->getResult(0));
      sums[total] = gemm;
      summedOver[total] = summedOver[memory.getRoot(op->getResult(0))] = summed;
    }
    axes &= ~summed;
    const double results = getCopies(axes);
    double flops = 0, compute = 0, reads = copies, work = 0;
    bool isMeasured = false;
    // Right factors: their places, and the bytes of as many copies as are read
    // so many times.
    struct Right {
      int64_t place;
      double bytes, copies, times;
    };
    SmallVector<Right> rights;
    op->walk([&](Operation *inner) {
      OpWork ofCopy = getArithmetic(inner);
      if (!ofCopy.isGemm || ofCopy.flops == 0) {
        const auto ofElement = static_cast<double>(getElementWork(inner));
        work += (ofElement + workOfElement) * ofCopy.flops;
        // Of quotients, roots and functions both halves of a multiply-add.
        if (ofElement > 1)
          ofCopy.flops *= 2 * ofElement;
        compute +=
            getComputeSeconds(machine, ofCopy) / machine.numSharing * copies;
        return;
      }
      work += ofCopy.flops / 2;
      Merged merged = merge(inner, ofCopy, copies, copies / getCopies(axes));
      compute += getGemmSeconds(inner, ofCopy, merged);
      flops += ofCopy.flops;
      // GEMMs with the same right factor follow one another.
      Value right = getFactorInMemory(inner->getOperand(1));
      if (auto argument = dyn_cast<BlockArgument>(right))
        if (argument.getOwner()->getParentOp() == op)
          right = op->getOperand(argument.getArgNumber());
      isMeasured |= hasMeasuredSides(inner, ofCopy);
      reads = merged.gemms * copies / getCopies(axes);
      const double factor = getStridedBytes(inner->getOperand(1)),
                   own = std::min(copies, getCopies(getVaries(right)));
      // The nearest cache holds it for the GEMMs that follow.
      const bool isKept = factor <= computer.memory.front().bytes;
      if (!isMeasured)
        rights.push_back({memory.getPlace(right), factor, own,
                          isKept ? own : std::max(own, reads)});
    });
    const double idle = getIdleFactor(op, results, work * copies / results);
    op->walk([&](Operation *inner) {
      holdFactors(inner, computer.workers / idle, results);
    });
    if (auto kernel = dyn_cast<KernelOp>(op))
      chooseOrder(kernel, copies);
    double seconds = 0, nearest = 0, local = 0, beyond = 0, taken = 0;
    // By place of an operand.
    llvm::SmallDenseMap<int64_t, double> distances;
    llvm::SmallDenseSet<int64_t> written;
    for (Value result : op->getResults())
      written.insert(memory.getPlace(result));
    // `copies` of `value`, accessed `times` times: all but the first time the
    // nearest cache that holds it has it.
    auto add = [&](Value value, double copies, double times, double distance,
                   bool isReplaced) {
      const double bytes = getBytes(value);
      auto getSeconds = [&](double distance) {
        return isReplaced ? computer.getReplacingSecondsPerByte(distance)
                          : computer.getSecondsPerByte(distance);
      };
      seconds +=
          bytes * (copies * getSeconds(distance) +
                   (times - copies) * getSeconds(std::min(distance, bytes)));
      nearest += bytes * times * getSeconds(1);
      local += bytes;
    };
    // Every GEMM reads its factors, however many others have read the same.
    auto gemm = dyn_cast<GemmOp>(op);
    for (Value operand : op->getOperands()) {
      double own = getCopies(getVaries(operand));
      bool isFactor = flops > 0 && !(gemm && operand == gemm.getSum());
      double times = isFactor ? std::max(own, reads) : own;
      double distance = memory.access(operand, getBytes(operand) * times);
      int64_t place = memory.getPlace(operand);
      distances.try_emplace(place, distance);
      add(operand, own, times, distance, written.contains(place));
    }
    for (const Right &right : rights) {
      const double distance = distances.lookup(right.place);
      beyond +=
          right.copies * computer.getFactorSeconds(right.bytes, distance) +
          (right.times - right.copies) *
              computer.getFactorSeconds(right.bytes,
                                        std::min(distance, right.bytes));
    }
    // What replaces an operand goes back to where that came from.
    for (Value result : op->getResults()) {
      double distance = memory.access(result, getBytes(result) * results);
      auto replaced = distances.find(memory.getPlace(result));
      if (replaced != distances.end())
        distance = std::max(distance, replaced->second);
      taken += takeBack(result, getBytes(result) * results, distance);
      add(result, results, results, distance, replaced != distances.end());
    }
    // The arithmetic of a GEMM hides its accesses to the nearest cache.
    if (flops > 0) {
      seconds = std::max(0.0, seconds - nearest);
      taken = std::max(0.0, taken - compute);
    }
    seconds += beyond + taken;
    // A rate that has been measured is that of a GEMM with its accesses.
    if (isMeasured)
      seconds = std::max(0.0, seconds - compute);
    addSpan(compute * idle + computer.commandSeconds, seconds * idle, 0, runs,
            flops, local);
  }

  /// Whether workers have computed some rows of all copies of `value` each,
  /// rather than some copies.
  bool isDividedByRows(Value value) {
    const double copies = getCopies(getVaries(value));
    const double together =
        std::max(1.0, togetherOf.lookup(memory.getPlace(value)));
    return std::fmod(copies / together, computer.workers) != 0;
  }

  /// Whether a worker reads of `operand` the rows alone that it computes.
  static bool isReadByRows(KernelOp kernel, unsigned number) {
    auto getRows = [](Value value) {
      auto shape = cast<RankedTensorType>(value.getType()).getShape();
      return shape.empty() ? 1 : shape.front();
    };
    Value argument = kernel.getBody().getArgument(number);
    return getRows(argument) == getRows(kernel.getResult(0)) &&
           llvm::none_of(kernel.getBody().getOps<DotGeneralOp>(),
                         [&](DotGeneralOp dot) {
                           return getFactorInMemory(dot.getRhs()) == argument ||
                                  (addsRows(dot) &&
                                   getFactorInMemory(dot.getLhs()) == argument);
                         });
  }

  /// Takes down how many neighbouring copies of the results of `kernel`, which
  /// are computed by calls for `copies` devices, are divided by rows
  /// (runtime/src/exec/CallOrders).
  void chooseOrder(KernelOp kernel, double copies) {
    const GroupKernel group = getGroupKernel(kernel, deviceCopies);
    const double calls = copies / static_cast<double>(group.devices);
    double together = 1;
    for (auto [number, operand] : llvm::enumerate(kernel.getOperands())) {
      if (!isReadByRows(kernel, number))
        continue;
      const double own = getCopies(getVaries(operand));
      if (own < calls && std::fmod(own, computer.workers) != 0)
        together = std::max(together, calls / own);
      const double written = togetherOf.lookup(memory.getPlace(operand));
      if (written > 0 && std::fmod(calls, written) == 0)
        together = std::max(together, written);
    }
    if (!group.addsUp())
      together *= static_cast<double>(group.devices);
    for (Value result : kernel.getResults())
      togetherOf[memory.getPlace(result)] = together;
  }

  static bool addsRows(DotGeneralOp dot) {
    return llvm::is_contained(dot.getLhsContracting(), 0);
  }

  /// Which lines of the factors of `op` workers hold who do not write them
  /// next, if `workers` of them share `results` copies of the result. All that
  /// use it read the right factor. A GEMM that adds up rows reads those of
  /// other workers: who has a copy of the result all, who shares one its
  /// columns.
  void holdFactors(Operation *op, double workers, double results) {
    auto gemm = dyn_cast<GemmOp>(op);
    auto dot = dyn_cast<DotGeneralOp>(op);
    if (!gemm && !dot)
      return;
    auto getOperand = [&](unsigned number) {
      Value factor = getFactorInMemory(op->getOperand(number));
      auto argument = dyn_cast<BlockArgument>(factor);
      Operation *kernel = op->getParentOp();
      return argument && isa<KernelOp>(kernel)
                 ? kernel->getOperand(argument.getArgNumber())
                 : factor;
    };
    Value left = getOperand(0), right = getOperand(1);
    // Blocks of rows, of which a worker has some.
    const bool isBatch = dot && !dot.getLhsBatching().empty();
    if (isBatch && workers > results)
      return;
    const bool adds =
        isBatch || (gemm ? gemm.getTransposeLhs() : addsRows(dot));
    const double ofOthers = 1 - 1 / computer.workers;
    if (workers > getCopies(getVaries(right)))
      hold(right, 1);
    else if (adds && isDividedByRows(right))
      hold(right, ofOthers);
    if (adds && workers > results)
      hold(left, 1 - results / workers);
    else if (adds && isDividedByRows(left))
      hold(left, ofOthers);
  }

  /// The bytes of a factor if a tile of a GEMM, whose columns are two vectors,
  /// reads a part of each row alone; CPUs fetch whole rows ahead.
  double getStridedBytes(Value factor) const {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(factor.getType()).getShape();
    bool isStrided = !shape.empty() && static_cast<double>(shape.back()) >
                                           2 * computer.vectorLanes;
    return isStrided ? getBytes(factor) : 0;
  }

  /// The runs of adjacent elements that a collective moves or adds up to make
  /// `copies` copies of `result`, of as many members as `over` has.
  static double getPieces(Operation *op, unsigned number, double copies,
                          double members) {
    auto shape = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getShape();
    };
    auto count = [](ArrayRef<int64_t> sizes) {
      double product = 1;
      for (int64_t size : sizes)
        product *= static_cast<double>(size);
      return product;
    };
    ArrayRef<int64_t> sizes = shape(op->getResult(number));
    if (auto gather = dyn_cast<AllGatherOp>(op))
      return copies * members *
             count(sizes.take_front(gather.getDims()[number]));
    if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      return copies * members *
             count(sizes.take_front(scatter.getDims()[number]));
    if (auto all = dyn_cast<AllToAllOp>(op)) {
      int64_t last = std::max(all.getSplitDim(), all.getConcatDim());
      double before = count(sizes.take_front(last));
      return copies * before *
             (last == static_cast<int64_t>(all.getConcatDim()) ? members : 1);
    }
    return copies * (isa<AllReduceOp>(op) ? members : 1);
  }

  /// What others read of a collective's result.
  static Value getReadResult(Operation *op, unsigned number) {
    Value result = op->getResult(number);
    auto start = dyn_cast<CollectiveStartOp>(op->getParentOp());
    return start ? start.getWait().getResult(
                       result.use_begin()->getOperandNumber())
                 : result;
  }

  /// Whether kernels read their shards of a sum in the sum, so that its
  /// reduce-scatter copies nothing (runtime/src/exec/ScatteredSums).
  bool isScatteredInPlace(Operation *op, unsigned number) const {
    // Where shards are blocks of columns the GEMM stores as many at once.
    constexpr int64_t columnsOfPanels = 32;
    auto scatter = dyn_cast<ReduceScatterOp>(op);
    Value sum = memory.getRoot(op->getOperand(number));
    if (!scatter || isPipeline || !sums.contains(sum))
      return false;
    auto shard = cast<RankedTensorType>(op->getResult(number).getType());
    ArrayRef<int64_t> shape = shard.getShape();
    int64_t dim = scatter.getDims()[number], rows = 1, bytes = 1;
    for (auto [i, size] : llvm::enumerate(shape))
      (static_cast<int64_t>(i) < dim ? rows : bytes) *= size;
    GemmOp gemm = sums.lookup(sum);
    if (rows > 1 && (!gemm || bytes % columnsOfPanels != 0 ||
                     !getElementTypeOrSelf(gemm.getLhs().getType()).isF32()))
      return false;
    bytes *= rows * getElementBytes(shard.getElementType());
    Value read = getReadResult(op, number);
    if (bytes % bufferAlignment != 0 || read.use_empty())
      return false;
    Operation *last = nullptr;
    for (Operation *user : read.getUsers()) {
      if (!isa<KernelOp, CollectiveStartOp>(user) ||
          user->getBlock() != read.getParentBlock())
        return false;
      if (!last || last->isBeforeInBlock(user))
        last = user;
    }
    return !isWritten(sum, read.getDefiningOp(), last);
  }

  /// Whether an op behind `first` up to `last` has a result in the place of
  /// `value`; false before places are planned.
  bool isWritten(Value value, Operation *first, Operation *last) const {
    std::optional<int64_t> offset = memory.getOffset(value);
    if (!offset)
      return false;
    const int64_t begin = *offset;
    const auto end = begin + static_cast<int64_t>(getBytes(value));
    for (Operation *op = first; op != last;) {
      op = op->getNextNode();
      auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName);
      if (!offsets)
        continue;
      for (auto [result, offset] :
           llvm::zip(op->getResults(), offsets.asArrayRef()))
        if (offset < end &&
            begin < offset + static_cast<int64_t>(getBytes(result)))
          return true;
    }
    return false;
  }

  /// Whether GEMMs read the shards of an all-gather's result where they lie, so
  /// that it copies nothing (runtime/src/exec/GatheredFactors): they alone read
  /// it, and none of them has the terms of several devices.
  bool isReadInPlace(Operation *op, unsigned number) const {
    // Shards of fewer columns are copied, of rows they follow one another.
    constexpr int64_t leastColumns = 32;
    auto gather = dyn_cast<AllGatherOp>(op);
    if (!gather || isPipeline)
      return false;
    Value read = getReadResult(op, number);
    auto shard = cast<RankedTensorType>(op->getOperand(number).getType());
    if (!shard.getElementType().isF32() || shard.getRank() != 2 ||
        (gather.getDims()[number] == 1 && shard.getDimSize(1) < leastColumns))
      return false;
    return !read.use_empty() &&
           llvm::all_of(read.getUses(), [&](OpOperand &use) {
             auto gemm = dyn_cast<GemmOp>(use.getOwner());
             return gemm && use.getOperandNumber() == 1 &&
                    !(joinsTerms(gemm) && getSummedAxes(gemm));
           });
  }

  /// Whether the factors of several devices are one with the terms of all, rows
  /// that follow one another; otherwise a sum over devices is one GEMM for each
  /// (runtime/src/exec/MergeGemms).
  static bool joinsTerms(GemmOp gemm) {
    return gemm.getTransposeLhs() && !gemm.getTransposeRhs();
  }

  void runCollective(Operation *op, int64_t runs) {
    AxisSet over = getSet(getMovedAxes(op));
    double seconds = 0, moved = 0;
    unsigned number = 0;
    for (auto [operand, result] :
         llvm::zip_equal(op->getOperands(), op->getResults())) {
      AxisSet in = getVaries(operand), out = in;
      bool isSummed = sums.contains(memory.getRoot(operand));
      if (isa<AllReduceOp, AllGatherOp>(op))
        out &= ~over;
      else
        out |= over;
      double copies = getCopies(out), written = getBytes(result) * copies;
      // Every result is made of as many bytes, but for sums.
      double read = written;
      if (isa<AllReduceOp, ReduceScatterOp>(op) && !isSummed)
        read = getBytes(operand) * getCopies(in);
      if (isa<AllReduceOp>(op) && isSummed) {
        memory.setAlias(result, operand);
        seconds = std::max(seconds, computer.commandSeconds);
      } else if (isReadInPlace(op, number) || isScatteredInPlace(op, number)) {
        memory.setPlace(result, memory.getPlace(operand));
      } else {
        seconds += seconds == 0 ? computer.commandSeconds : 0;
        moved += read + written;
        seconds += access(operand, read);
        // Workers have some elements of all copies.
        if (!isDividedByRows(operand))
          hold(operand, 1 - 1 / computer.workers);
        seconds += write(result, copies) +
                   computer.pieceSeconds *
                       getPieces(op, number, copies, getCopies(over));
      }
      ++number;
    }
    // Arithmetic and fetching go on beside each other.
    if (moved > 0)
      seconds = std::max(seconds, computer.getLeastSeconds(
                                      getCollectiveCost(op)->kind, moved));
    addSpan(0, 0, seconds, runs, 0);
  }

  void addSpan(double compute, double memory, double communication,
               int64_t runs, double gemmFlops, double bytes = 0) {
    compute *= runs;
    memory *= runs;
    communication *= runs;
    estimate.computeSeconds += compute;
    estimate.memorySeconds += memory;
    estimate.communicationSeconds += communication;
    double seconds = compute + memory + communication;
    auto [number, isNew] = spanOf.try_emplace(enclosing, estimate.spans.size());
    if (isNew)
      estimate.spans.push_back({enclosing});
    OpSpan &span = estimate.spans[number->second];
    span.seconds += seconds;
    span.communicates |= communication > 0;
    span.gemmFlops += runs * gemmFlops;
    span.memoryBytes += runs * bytes;
  }

  const Machine &machine;
  const ComputerRates &computer;
  DeviceCopies deviceCopies;
  ReuseDistances memory;
  /// By value the axes over which kernels and GEMMs have added it up.
  llvm::DenseMap<Value, AxisSet> summedOver;
  /// Values that GEMMs have added up over devices, with one of them, or
  /// kernels, with null.
  llvm::DenseMap<Value, GemmOp> sums;
  /// By place how many neighbouring copies workers compute together, some rows
  /// of each.
  llvm::DenseMap<int64_t, double> togetherOf;
  /// By place the part of the bytes whose lines other workers hold than the one
  /// who writes them next.
  llvm::DenseMap<int64_t, double> heldByOthers;
  bool isPipeline = false;
  llvm::DenseMap<Operation *, size_t> spanOf;
  Operation *enclosing = nullptr;
};

} // namespace

TimeEstimate shardc::estimateSharedTime(func::FuncOp function,
                                        const Machine &machine) {
  return SharedProgram(function, machine).estimate;
}
