//===- GroupKernels.cpp - Kernels of all devices of a group ---------------===//

#include "shardc/Analysis/GroupKernels.h"

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
  if (!value.hasOneUse() || !getElementTypeOrSelf(value.getType()).isF32())
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

/// The operand of `kernel` that `factor` of its GEMM is; negative if none.
static int64_t getOperandNumber(Value factor) {
  auto argument = dyn_cast<BlockArgument>(getFactorInMemory(factor));
  return argument ? argument.getArgNumber() : -1;
}

/// The one GEMM of `kernel`, of matrices that are operands, if rows of the left
/// one are those of the result; else null.
static DotGeneralOp getGemmOfRows(KernelOp kernel) {
  auto dots = kernel.getBody().front().getOps<DotGeneralOp>();
  if (!llvm::hasSingleElement(dots))
    return nullptr;
  DotGeneralOp dot = *dots.begin();
  auto isMatrix = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getRank() == 2;
  };
  return isMatrix(dot.getLhs()) && isMatrix(dot.getRhs()) &&
                 isMatrix(dot.getResult()) &&
                 dot.getLhsContracting() == ArrayRef<int64_t>(1) &&
                 getOperandNumber(dot.getLhs()) >= 0 &&
                 getOperandNumber(dot.getRhs()) >= 0
             ? dot
             : nullptr;
}

/// Whether `kernel` is `dot` with elementwise ops behind it.
static bool isOneGemm(KernelOp kernel, DotGeneralOp dot) {
  std::vector<KernelNest> nests = getKernelNests(kernel);
  return nests.size() == 1 && nests[0].kind == NestKind::Gemm &&
         llvm::all_of(nests[0].ops, [&](Operation *op) {
           return op == dot || op->getResult(0) == dot.getLhs() ||
                  op->getResult(0) == dot.getRhs() || isElementwise(op) ||
                  isFreeToRepeat(op);
         });
}

/// The devices of a group over which only a sum reads the result of `dot`, the
/// GEMM of `kernel`; 1 if there is none.
static int64_t getSummedDevices(KernelOp kernel, DotGeneralOp dot) {
  Operation *sum = kernel.getNumResults() == 1
                       ? getSumOverDevices(kernel.getResult(0))
                       : nullptr;
  // Nothing is behind the GEMM.
  Block &body = kernel.getBody().front();
  if (!sum || body.getTerminator()->getOperand(0) != dot.getResult())
    return 1;
  return getCollectiveCost(sum)->groupSize;
}

/// The devices of a group that have one left factor and other right ones.
static int64_t getSharingDevices(KernelOp kernel, DotGeneralOp dot,
                                 const DeviceCopies &copies) {
  // Half a vector or one, whose multiply-adds wait for loads of the left
  // factor. Measured: five and six columns lose, with empty lanes beside them.
  constexpr int64_t columnsOfDevice[] = {4, 8};
  GemmView gemm = *getGemmView(dot);
  if (!gemm.isF32 || !llvm::is_contained(columnsOfDevice, gemm.n))
    return 1;
  auto getAxes = [&](Value factor) {
    return copies.getAxes(kernel.getOperand(getOperandNumber(factor)));
  };
  AxisSet axes = 0;
  for (Value operand : kernel.getOperands())
    axes |= copies.getAxes(operand);
  bool readsCoordinates = false;
  kernel.getBody().walk([&](Operation *op) {
    readsCoordinates |= copies.getCoordinates(op) != 0;
  });
  const AxisSet group = axes & ~getAxes(dot.getLhs());
  if (readsCoordinates || (group & ~getAxes(dot.getRhs())) != 0)
    return 1;
  return copies.getCount(group);
}

GroupKernel getGroupKernel(KernelOp kernel, const DeviceCopies &copies) {
  DotGeneralOp dot = getGemmOfRows(kernel);
  if (!dot)
    return {};
  GroupKernel group{getSummedDevices(kernel, dot), -1};
  if (group.devices == 1) {
    group.devices = getSharingDevices(kernel, dot, copies);
    if (group.devices > 1)
      group.sharedOperand = getOperandNumber(dot.getLhs());
  }
  if (group.devices == 1 || group.devices > mostDevices ||
      group.devices * getGemmView(dot)->k > mostTerms ||
      !isOneGemm(kernel, dot))
    return {};
  return group;
}

} // namespace shardc
