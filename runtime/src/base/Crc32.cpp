//===- Crc32.cpp - Checksums of bytes -------------------------------------===//

#include "base/Crc32.h"

#include <libdeflate.h>
#include <zlib.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

using namespace shardc::rt;

#ifdef __x86_64__

/// The polynomial x^n mod P of the CRC, bits reversed as the CRC has them, and
/// shifted as the product of two that are reversed needs it.
static constexpr uint64_t power(int n) {
  uint32_t value = 0x80000000u;
  for (int i = 0; i < n; ++i)
    value = (value >> 1) ^ (value & 1 ? 0xedb88320u : 0);
  return uint64_t(value) << 1;
}

/// Folds blocks of 128 bytes onto the next one, in eight parts of 16 bytes each
/// (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
/// Instruction", 2009), two at a time. libdeflate 1.14 does one at a time,
/// which takes 1.8 times as long on Zen 3.
__attribute__((target("avx2,vpclmulqdq"))) static uint32_t
extendByFolds(uint32_t before, const char *data, size_t bytes) {
  constexpr size_t block = 128;
  constexpr int count = 4;
  auto load = [&](int i) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(data) + i);
  };
  const __m256i by =
      _mm256_set_epi64x(power(8 * block - 32), power(8 * block + 32),
                        power(8 * block - 32), power(8 * block + 32));
  __m256i parts[count];
  for (int i = 0; i < count; ++i)
    parts[i] = load(i);
  parts[0] = _mm256_xor_si256(
      parts[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128(~before)));
  for (data += block, bytes -= block; bytes >= block;
       data += block, bytes -= block)
    for (int i = 0; i < count; ++i) {
      __m256i low = _mm256_clmulepi64_epi128(parts[i], by, 0x00);
      __m256i high = _mm256_clmulepi64_epi128(parts[i], by, 0x11);
      parts[i] = _mm256_xor_si256(_mm256_xor_si256(low, high), load(i));
    }
  // The last block has the remainder of all before it.
  uint32_t sum = libdeflate_crc32(~0u, parts, sizeof(parts));
  return bytes > 0 ? libdeflate_crc32(sum, data, bytes) : sum;
}

#endif

uint32_t shardc::rt::extendCrc32(uint32_t before, absl::string_view bytes) {
#ifdef __x86_64__
  constexpr size_t worthwhile = 512;
  static const bool hasFolds =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
  if (hasFolds && bytes.size() >= worthwhile)
    return extendByFolds(before, bytes.data(), bytes.size());
#endif
  // For a null pointer it returns that of no bytes at all.
  return bytes.empty() ? before
                       : libdeflate_crc32(before, bytes.data(), bytes.size());
}

uint32_t shardc::rt::joinCrc32(uint32_t before, uint32_t after,
                               uint64_t bytes) {
  return crc32_combine64(before, after, bytes);
}
