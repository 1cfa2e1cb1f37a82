//===- Random.cpp - Many counter-based random numbers ---------------------===//
//
// Four blocks at a time where the CPU has AVX2, for which Random123 has no
// version of Philox: the compiler's own takes three times as long.
//
//===----------------------------------------------------------------------===//

#include "data/Random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace shardc::rt;

static void fillBlockByBlock(uint64_t seed, uint64_t stream, uint64_t first,
                             absl::Span<uint64_t> bits) {
  for (size_t i = 0; i < bits.size(); ++i) {
    auto block = randomBlock(seed, stream, first + i);
    bits[i] = (static_cast<uint64_t>(block[0]) << 32) | block[1];
  }
}

#if defined(__x86_64__)
/// Fills the part of `bits` that is a multiple of four. A word of each block is
/// in the lower half of a 64-bit lane; the upper half is left as it comes,
/// since products read the lower one.
__attribute__((target("avx2"))) static void
fillFourByFour(uint64_t seed, uint64_t stream, absl::Span<uint64_t> bits) {
  const __m256i multipliers[] = {_mm256_set1_epi64x(PHILOX_M4x32_0),
                                 _mm256_set1_epi64x(PHILOX_M4x32_1)};
  const __m256i lowerHalf = _mm256_set1_epi64x(0xffffffff);
  __m256i index = _mm256_setr_epi64x(0, 1, 2, 3);
  for (size_t i = 0; i + 4 <= bits.size(); i += 4) {
    __m256i words[] = {index, _mm256_srli_epi64(index, 32),
                       _mm256_set1_epi64x(stream),
                       _mm256_set1_epi64x(stream >> 32)};
    uint32_t keys[] = {static_cast<uint32_t>(seed),
                       static_cast<uint32_t>(seed >> 32)};
#pragma GCC unroll 10
    for (int round = 0; round < PHILOX4x32_DEFAULT_ROUNDS; ++round) {
      const __m256i products[] = {_mm256_mul_epu32(words[0], multipliers[0]),
                                  _mm256_mul_epu32(words[2], multipliers[1])};
      auto mix = [&](__m256i product, __m256i word, uint32_t key)
          __attribute__((target("avx2"))) {
        return _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(product, 32), word),
            _mm256_set1_epi64x(key));
      };
      words[0] = mix(products[1], words[1], keys[0]);
      words[2] = mix(products[0], words[3], keys[1]);
      words[1] = products[1];
      words[3] = products[0];
      keys[0] += PHILOX_W32_0;
      keys[1] += PHILOX_W32_1;
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(bits.data() + i),
                        _mm256_or_si256(_mm256_slli_epi64(words[0], 32),
                                        _mm256_and_si256(words[1], lowerHalf)));
    index = _mm256_add_epi64(index, _mm256_set1_epi64x(4));
  }
}
#endif

void shardc::rt::randomBits(uint64_t seed, uint64_t stream,
                            absl::Span<uint64_t> bits) {
  size_t done = 0;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    fillFourByFour(seed, stream, bits);
    done = bits.size() / 4 * 4;
  }
#endif
  fillBlockByBlock(seed, stream, done, bits.subspan(done));
}
