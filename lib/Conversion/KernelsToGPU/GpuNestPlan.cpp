//===- GpuNestPlan.cpp - How a grid shares a nest -------------------------===//

#include "GpuNestPlan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shardc {

/// Threads of most blocks: eight warps hide latency without keeping a
/// multiprocessor's registers to themselves.
static constexpr int64_t usualThreads = 256;

/// Threads where a single block has a long way to go: the most there can be.
static constexpr int64_t mostThreads = 1024;

/// Blocks of a nest at most. Eight blocks of `usualThreads` fill one of some
/// hundred multiprocessors; beyond that blocks stride.
static constexpr int64_t mostBlocks = 1024;

/// Vectors (or elements) of a row that are worth a block of threads.
static constexpr int64_t stepsForBlock = 8 * warpSize;

/// Vectors of a row, and rows of a block of columns, that are worth the largest
/// block.
static constexpr int64_t stepsForLargestBlock = 8 * usualThreads;
static constexpr int64_t rowsForLargestBlock = 256;

/// Vectors of a row that a thread keeps at most: code is written out for each.
static constexpr int64_t mostKeptVectors = 8;

/// Registers for the values of a row that threads keep: a quarter of those that
/// a thread has in a block of `usualThreads`, and less than half in the
/// largest.
static constexpr int64_t usualKeptRegisters = 64;
static constexpr int64_t fewestKeptRegisters = 24;

/// Vectors along the last of `shape`'s dimensions, or along all if the nest is
/// flat: 1 if rows of them would not start at multiples of a vector.
static int64_t getLanes(const GpuNestPlan &plan, ArrayRef<int64_t> shape) {
  if (isScalarNest(plan.nest))
    return 1;
  int64_t dim = getLastLongDim(shape);
  if (dim < 0)
    return 1;
  if (plan.isFlat)
    return getNumElements(shape) >= gpuLanes ? gpuLanes : 1;
  return shape[dim] % gpuLanes == 0 ? gpuLanes : 1;
}

/// Plans the parts that do not depend on the threads of a block.
static void planUnits(GpuNestPlan &plan) {
  KernelNest &nest = plan.nest;
  // A single element is a sum, computed where it is needed; so are those of a
  // GEMM whose dimensions do not collapse.
  if (nest.kind == NestKind::Gemm) {
    std::optional<GemmView> view = getGemmView(nest.dot);
    if (view && getNumElements(nest.shape) > 1)
      plan.gemm = planGpuGemm(*view);
    else
      nest.kind = NestKind::Map;
  }
  plan.isFlat = isFlatNest(nest);
  SplitShape split = splitShape(nest);
  int64_t elements = getNumElements(nest.shape);
  switch (nest.kind) {
  case NestKind::Gemm:
    plan.units = plan.gemm.view.batch * plan.gemm.getTilesDown() *
                 plan.gemm.getTilesAcross();
    return;
  case NestKind::Map:
    plan.lanes = getLanes(plan, nest.shape);
    plan.units = elements / plan.lanes;
    return;
  case NestKind::Rows:
    plan.lanes = getLanes(plan, split.reduced);
    plan.units = getNumElements(split.kept);
    plan.steps = getNumElements(split.reduced) / plan.lanes;
    return;
  case NestKind::Columns: {
    plan.lanes = getLanes(plan, split.kept);
    int64_t dim = getLastLongDim(split.kept);
    int64_t columns = dim < 0 ? 1 : split.kept[dim];
    plan.columns =
        std::min<int64_t>(mostColumnsPerBlock, llvm::PowerOf2Ceil(columns));
    plan.units = getNumElements(split.kept) / columns *
                 llvm::divideCeil(columns, plan.columns);
    plan.steps = getNumElements(split.reduced);
    return;
  }
  }
}

/// Whether one vector of `value` has registers of its own in a thread:
/// constants have none, and a row's single value has one register for all.
static bool takesRegisters(const KernelNest &nest, Value value) {
  Operation *op = value.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op))
    return llvm::any_of(broadcast.getDims(), [&](int64_t dim) {
      return llvm::is_contained(nest.reduced, dim);
    });
  auto type = cast<RankedTensorType>(value.getType());
  return type.getShape() == ArrayRef<int64_t>(nest.shape) &&
         !isa_and_nonnull<ConstantOp>(op);
}

/// Values of an element that one pass over a row computes or reads and a later
/// one needs, at the time when there are most of them.
static int64_t countKeptValues(const KernelNest &nest) {
  SmallVector<NestPass> passes = getPasses(nest);
  // The first and the last pass that needs a value.
  llvm::MapVector<Value, std::pair<size_t, size_t>> needed;
  for (auto [number, pass] : llvm::enumerate(passes)) {
    SmallVector<Value> worklist;
    for (ReduceOp reduce : pass.reductions)
      worklist.push_back(reduce.getOperand());
    if (pass.stores)
      llvm::append_range(worklist, nest.fullResults);
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (!takesRegisters(nest, value))
        continue;
      auto [it, isNew] = needed.insert({value, {number, number}});
      it->second.second = number;
      if (isNew && value.getDefiningOp())
        llvm::append_range(worklist, value.getDefiningOp()->getOperands());
    }
  }
  int64_t most = 0;
  for (size_t pass = 1; pass < passes.size(); ++pass)
    most = std::max<int64_t>(most, llvm::count_if(needed, [&](auto &entry) {
                               auto [first, last] = entry.second;
                               return first < pass && last >= pass;
                             }));
  return most;
}

/// Whether threads keep their values of a row: some are needed again, and all
/// fit into registers.
static bool keepsRows(const GpuNestPlan &plan, int64_t threads) {
  int64_t vectors = llvm::divideCeil(plan.steps, plan.groupThreads);
  int64_t registers = vectors * plan.lanes * countKeptValues(plan.nest);
  return !plan.isFlat && vectors <= mostKeptVectors && registers > 0 &&
         registers <= (threads == mostThreads ? fewestKeptRegisters
                                              : usualKeptRegisters);
}

GpuKernelPlan planGpuKernel(KernelOp kernel) {
  GpuKernelPlan kernelPlan;
  bool isLong = false, hasGemm = false;
  for (KernelNest &nest : getKernelNests(kernel)) {
    GpuNestPlan plan;
    plan.nest = std::move(nest);
    planUnits(plan);
    isLong |= plan.steps >= (plan.nest.kind == NestKind::Columns
                                 ? rowsForLargestBlock
                                 : stepsForLargestBlock);
    hasGemm |= plan.nest.kind == NestKind::Gemm;
    kernelPlan.nests.push_back(std::move(plan));
  }
  static_assert(gemmThreads == usualThreads);
  kernelPlan.threads = isLong && !hasGemm ? mostThreads : usualThreads;
  for (GpuNestPlan &plan : kernelPlan.nests) {
    int64_t unitsPerBlock = kernelPlan.threads;
    if (plan.nest.kind == NestKind::Columns || plan.nest.kind == NestKind::Gemm)
      unitsPerBlock = 1;
    if (plan.nest.kind == NestKind::Rows) {
      plan.groupThreads =
          plan.steps > stepsForBlock
              ? kernelPlan.threads
              : std::min<int64_t>(warpSize, llvm::PowerOf2Ceil(plan.steps));
      unitsPerBlock = kernelPlan.threads / plan.groupThreads;
      plan.keepsRows = keepsRows(plan, kernelPlan.threads);
    }
    plan.blocks = std::clamp<int64_t>(
        llvm::divideCeil(plan.units, unitsPerBlock), 1, mostBlocks);
    kernelPlan.blocks += plan.blocks;
  }
  return kernelPlan;
}

} // namespace shardc
