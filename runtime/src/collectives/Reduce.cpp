//===- Reduce.cpp - Elementwise reduction of blocks -----------------------===//

#include "collectives/Reduce.h"

#include "base/Convert.h"
#include "base/VectorClones.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace shardc::rt;

// No vector width changes a result: each element is added in the same order.

SHARDC_VECTOR_CLONES
static void addF32(float *__restrict sum, const float *__restrict in,
                   int64_t elements) {
  for (int64_t i = 0; i < elements; ++i)
    sum[i] += in[i];
}

SHARDC_VECTOR_CLONES
static void maxF32(float *__restrict result, const float *__restrict in,
                   int64_t elements) {
  // A NaN on either side stays, as in the generated code.
  for (int64_t i = 0; i < elements; ++i)
    result[i] = (in[i] > result[i] || std::isnan(in[i])) ? in[i] : result[i];
}

template <typename T>
static void combine(Reduction reduction, T *result, const T *in,
                    int64_t elements) {
  if constexpr (std::is_same_v<T, float>) {
    if (reduction == Reduction::Sum)
      return addF32(result, in, elements);
    return maxF32(result, in, elements);
  } else if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < elements; ++i)
      if (reduction == Reduction::Sum)
        result[i] += in[i];
      else if (in[i] > result[i] || std::isnan(in[i]))
        result[i] = in[i];
  } else {
    // Integers wrap around.
    using Unsigned = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < elements; ++i)
      result[i] = reduction == Reduction::Sum
                      ? static_cast<T>(static_cast<Unsigned>(result[i]) +
                                       static_cast<Unsigned>(in[i]))
                      : std::max(result[i], in[i]);
  }
}

template <typename T>
static void reduceTyped(Reduction reduction, absl::Span<const void *const> in,
                        int64_t offset, int64_t elements, void *out) {
  // A separate block, since `out` may be the block of a later input.
  T result[maxReduceBlock];
  std::memcpy(result, static_cast<const T *>(in[0]) + offset,
              elements * sizeof(T));
  for (const void *source : in.subspan(1))
    combine(reduction, result, static_cast<const T *>(source) + offset,
            elements);
  std::memcpy(out, result, elements * sizeof(T));
}

static void reduceBF16(Reduction reduction, absl::Span<const void *const> in,
                       int64_t offset, int64_t elements, void *out) {
  float result[maxReduceBlock], next[maxReduceBlock];
  auto load = [&](const void *source, float *values) {
    const uint16_t *from = static_cast<const uint16_t *>(source) + offset;
    for (int64_t i = 0; i < elements; ++i)
      values[i] = fromBF16(from[i]);
  };
  load(in[0], result);
  for (const void *source : in.subspan(1)) {
    load(source, next);
    combine(reduction, result, next, elements);
  }
  for (int64_t i = 0; i < elements; ++i)
    static_cast<uint16_t *>(out)[i] = toBF16(result[i]);
}

void shardc::rt::reduceBlock(DType dtype, Reduction reduction,
                             absl::Span<const void *const> in, int64_t offset,
                             int64_t elements, void *out) {
  switch (dtype) {
  case DType::F32:
    return reduceTyped<float>(reduction, in, offset, elements, out);
  case DType::BF16:
    return reduceBF16(reduction, in, offset, elements, out);
  case DType::F64:
    return reduceTyped<double>(reduction, in, offset, elements, out);
  case DType::I32:
    return reduceTyped<int32_t>(reduction, in, offset, elements, out);
  case DType::I64:
    return reduceTyped<int64_t>(reduction, in, offset, elements, out);
  case DType::Bool:
    return reduceTyped<uint8_t>(reduction, in, offset, elements, out);
  }
}
