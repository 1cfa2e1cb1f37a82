//===- HalfGemm.h - GEMMs of bf16 -------------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_HALFGEMM_H
#define SHARDC_RT_SRC_BACKENDS_CPU_HALFGEMM_H

#include "backends/cpu/TiledGemm.h"

namespace shardc::rt {

/// GEMMs of bf16 on CPUs without arithmetic for it: blocks of both factors are
/// converted to f32 while they are in the cache, and their products added up in
/// f32. Bias, ReLU and the addition to the old result come before the one
/// rounding to a result of bf16; a result of f32 is not rounded. The bits
/// depend on the shape alone.
class HalfGemm : public TiledGemm {
public:
  /// `result`, of c and the bias, is f32 or bf16.
  HalfGemm(const GemmCommand &gemm, DType result)
      : TiledGemm(gemm, Tiling(gemm, /*tileFlops=*/int64_t(1) << 21,
                               /*minBlock=*/128)),
        isResultHalf(result == DType::BF16) {}

  void run(const GemmOperands &operands, int64_t round,
           int64_t index) const override;

private:
  bool isResultHalf;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_HALFGEMM_H
