//===- PlanGemms.cpp - GEMMs in a plan ------------------------------------===//

#include "PlanTables.h"

using namespace mlir;

namespace shardc {

flatbuffers::Offset<fb::Gemm>
writeGemm(PlanContext &plan, GemmOp gemm,
          const llvm::DenseMap<Value, uint32_t> &numbers) {
  auto lhs = cast<RankedTensorType>(gemm.getLhs().getType()).getShape();
  auto result = cast<RankedTensorType>(gemm.getResult().getType()).getShape();
  auto getOptional = [&](Value value) -> int32_t {
    return value ? int32_t(numbers.lookup(value)) : -1;
  };
  return fb::CreateGemm(
      plan.builder, numbers.lookup(gemm.getLhs()),
      numbers.lookup(gemm.getRhs()), numbers.lookup(gemm.getResult()),
      getOptional(gemm.getBias()), /*batch=*/result.size() == 3 ? result[0] : 1,
      /*m=*/result[result.size() - 2], /*n=*/result.back(),
      /*k=*/gemm.getTransposeLhs() ? lhs[lhs.size() - 2] : lhs.back(),
      gemm.getTransposeLhs(), gemm.getTransposeRhs(),
      /*accumulate=*/bool(gemm.getSum()),
      gemm.getRelu() ? fb::Activation::Relu : fb::Activation::None,
      plan.precision, getOptional(gemm.getColumnSums()),
      gemm.getSumsLhs() ? fb::Summed::A : fb::Summed::B);
}

} // namespace shardc
