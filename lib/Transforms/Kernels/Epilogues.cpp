//===- Epilogues.cpp - Helpers for epilogues of GEMMs ---------------------===//

#include "Epilogues.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

bool shardc::isZero(Value value) {
  DenseElementsAttr elements;
  while (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getOperand();
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
         isa<FloatType>(elements.getElementType()) &&
         elements.getSplatValue<APFloat>().isZero();
}

void shardc::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}
