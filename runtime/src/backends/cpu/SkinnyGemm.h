//===- SkinnyGemm.h - GEMMs with a short side -------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_SKINNYGEMM_H
#define SHARDC_RT_SRC_BACKENDS_CPU_SKINNYGEMM_H

#include <cstdint>

namespace shardc::rt {

/// The longest short side: the length of the result's rows or of the sums.
inline constexpr int64_t skinnySide = 16;

/// c = relu?(a·b + bias? + c?) of f32, where element (i, l) of a is at
/// i·aRow + l·aColumn, and so for b; rows of c are `cRow` apart. Fast where n
/// or k is at most `skinnySide`: there a library spends its time on packing
/// both factors for a cache. Correct for any sizes from 1 on.
struct SkinnyGemm {
  int64_t m, n, k;
  int64_t aRow, aColumn, bRow, bColumn, cRow;
  bool accumulate, relu;

  /// `bias` may be null.
  void run(const float *a, const float *b, const float *bias, float *c) const;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_SKINNYGEMM_H
