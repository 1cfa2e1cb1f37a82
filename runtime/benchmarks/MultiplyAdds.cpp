//===- MultiplyAdds.cpp - Multiply-adds in registers ----------------------===//

#include "MultiplyAdds.h"

#include <cstdint>
#include <immintrin.h>

using namespace shardc::rt::bench;

static constexpr int64_t rounds = 1 << 18;
static constexpr int accumulators = 12;

__attribute__((target("avx2,fma"))) static float run256() {
  __m256 sums[accumulators], factor = _mm256_set1_ps(0.5f);
  for (__m256 &sum : sums)
    sum = _mm256_set1_ps(1.0f);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(sum, factor, factor);
  float result = 0;
  for (__m256 &sum : sums)
    result += _mm256_cvtss_f32(sum);
  return result;
}

__attribute__((target("avx512f"))) static float run512() {
  __m512 sums[accumulators], factor = _mm512_set1_ps(0.5f);
  for (__m512 &sum : sums)
    sum = _mm512_set1_ps(1.0f);
  for (int64_t round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(sum, factor, factor);
  float result = 0;
  for (__m512 &sum : sums)
    result += _mm512_cvtss_f32(sum);
  return result;
}

std::vector<MultiplyAdds> shardc::rt::bench::multiplyAdds() {
  constexpr double perLane = 2.0 * accumulators * rounds;
  std::vector<MultiplyAdds> all;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    all.push_back({"avx2", 8 * perLane, run256});
  if (__builtin_cpu_supports("avx512f"))
    all.push_back({"avx512", 16 * perLane, run512});
  return all;
}
