//===- DeviceSums.cpp - Values that only a sum over devices reads ---------===//

#include "shardc/Analysis/DeviceSums.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/GemmView.h"
#include "shardc/Analysis/KernelNest.h"

using namespace mlir;

namespace shardc {

/// Devices of a group, whose GEMMs are code one after the other.
static constexpr int64_t mostDevices = 16;
/// Terms on all devices: panels of two vectors of columns are copied to the
/// stack (GemmBuilder::packPanels).
static constexpr int64_t mostTerms = 4096;

Operation *getSumOverDevices(Value value) {
  if (!value.hasOneUse() || !getElementTypeOrSelf(value.getType()).isF32() ||
      isa<AccumulateOp>(value.getDefiningOp()->getParentOp()))
    return nullptr;
  Operation *user = *value.user_begin();
  if (auto start = dyn_cast<CollectiveStartOp>(user))
    user = start.getCollective();
  auto reduce = dyn_cast<AllReduceOp>(user);
  if ((reduce && reduce.getKind() == ReductionKind::Sum) ||
      isa<ReduceScatterOp>(user))
    return user;
  return nullptr;
}

int64_t getSummedDevices(KernelOp kernel) {
  if (kernel.getNumResults() != 1)
    return 1;
  Operation *sum = getSumOverDevices(kernel.getResult(0));
  if (!sum)
    return 1;
  int64_t devices = getCollectiveCost(sum)->groupSize;
  Block &body = kernel.getBody().front();
  Value result = body.getTerminator()->getOperand(0);
  auto dot = result.getDefiningOp<DotGeneralOp>();
  if (!dot || devices > mostDevices)
    return 1;
  // Nothing but the GEMM, whose factors are in memory.
  for (Operation &op : body.without_terminator())
    if (&op != dot &&
        !(isa<ReshapeOp>(op) && isa<BlockArgument>(op.getOperand(0))))
      return 1;
  auto isMatrix = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == 2;
  };
  if (!isMatrix(dot.getLhs()) || !isMatrix(dot.getRhs()) || !isMatrix(result) ||
      dot.getLhsContracting() != ArrayRef<int64_t>(1) ||
      devices * getGemmView(dot)->k > mostTerms)
    return 1;
  std::vector<KernelNest> nests = getKernelNests(kernel);
  return nests.size() == 1 && nests[0].kind == NestKind::Gemm ? devices : 1;
}

} // namespace shardc
