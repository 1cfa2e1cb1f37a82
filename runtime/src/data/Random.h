//===- Random.h - A stream of counter-based random numbers ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_DATA_RANDOM_H
#define SHARDC_RT_SRC_DATA_RANDOM_H

#include "absl/types/span.h"

#include <Random123/philox.h>
#include <cmath>
#include <cstdint>

namespace shardc::rt {

/// Numbers number `index` of stream (seed, stream): Philox4x32-10.
inline r123::Philox4x32::ctr_type randomBlock(uint64_t seed, uint64_t stream,
                                              uint64_t index) {
  return r123::Philox4x32()(
      {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
        static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)}},
      {{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}});
}

/// The first 64 bits of blocks 0, 1, ... of stream (seed, stream), the more
/// significant word first.
void randomBits(uint64_t seed, uint64_t stream, absl::Span<uint64_t> bits);

/// Uniform in (0, 1).
inline double toUniform(uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

/// Standard normal, by the method of Box and Muller.
inline double toNormal(uint32_t a, uint32_t b) {
  return std::sqrt(-2.0 * std::log(toUniform(a))) *
         std::cos(6.283185307179586 * toUniform(b));
}

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_RANDOM_H
