//===- Reduce.cpp - Elementwise reduction of blocks -----------------------===//

#include "collectives/Reduce.h"

#include "base/Convert.h"
#include "base/ReductionTree.h"
#include "base/VectorClones.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

using namespace shardc::rt;

/// Elements that are reduced at a time: values of some nodes fit the
/// first-level cache.
static constexpr int64_t partElements = 1024;

// No vector width changes a result: each element is added in the same order.
// `out` may be one of the others.

SHARDC_VECTOR_CLONES
static void addF32(const float *left, const float *right, int64_t elements,
                   float *out) {
  for (int64_t i = 0; i < elements; ++i)
    out[i] = left[i] + right[i];
}

// The same of the leaves of a node in one pass. The pragma says that no element
// is written before another one is read there: places are the same or apart.

SHARDC_VECTOR_CLONES
static void addFourF32(const std::array<const float *, 4> &in, int64_t elements,
                       float *out) {
  const float *a = in[0], *b = in[1], *c = in[2], *d = in[3];
#pragma GCC ivdep
  for (int64_t i = 0; i < elements; ++i)
    out[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

SHARDC_VECTOR_CLONES
static void addEightF32(const std::array<const float *, 8> &in,
                        int64_t elements, float *out) {
  const float *a = in[0], *b = in[1], *c = in[2], *d = in[3], *e = in[4],
              *f = in[5], *g = in[6], *h = in[7];
#pragma GCC ivdep
  for (int64_t i = 0; i < elements; ++i)
    out[i] = ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]));
}

SHARDC_VECTOR_CLONES
static void maxF32(const float *left, const float *right, int64_t elements,
                   float *out) {
  // A NaN on either side stays, as in the generated code.
  for (int64_t i = 0; i < elements; ++i)
    out[i] = (right[i] > left[i] || std::isnan(right[i])) ? right[i] : left[i];
}

template <typename T>
static void combine(Reduction reduction, const T *left, const T *right,
                    int64_t elements, T *out) {
  if constexpr (std::is_same_v<T, float>) {
    if (reduction == Reduction::Sum)
      return addF32(left, right, elements, out);
    return maxF32(left, right, elements, out);
  } else if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < elements; ++i)
      if (reduction == Reduction::Sum)
        out[i] = left[i] + right[i];
      else
        out[i] =
            (right[i] > left[i] || std::isnan(right[i])) ? right[i] : left[i];
  } else {
    // Integers wrap around.
    using Unsigned = std::make_unsigned_t<T>;
    for (int64_t i = 0; i < elements; ++i)
      out[i] = reduction == Reduction::Sum
                   ? static_cast<T>(static_cast<Unsigned>(left[i]) +
                                    static_cast<Unsigned>(right[i]))
                   : std::max(left[i], right[i]);
  }
}

namespace {

/// Reduces a part of operands in memory, which are T or, if values in registers
/// are not T, bf16.
template <typename T, typename InMemory = T>
class PartReducer {
public:
  PartReducer(Reduction reduction, const ReduceOperand *next, int64_t offset,
              int64_t elements)
      : reduction(reduction), next(next), offset(offset), elements(elements) {}

  /// The values of the node of the next `leaves` leaves: in the place of an
  /// operand, or at `out`. Of the left child they may be at `ofLeft`, which may
  /// be `out` unless that is the place of an operand.
  const T *reduce(int64_t leaves, T *ofLeft, T *out) {
    if constexpr (std::is_same_v<T, float> && std::is_same_v<InMemory, float>)
      if (addLeaves<4>(leaves, out, addFourF32) ||
          addLeaves<8>(leaves, out, addEightF32))
        return out;
    if (next->leaves == leaves)
      return load(static_cast<const InMemory *>((next++)->data) + offset, out);
    T ofRight[partElements];
    int64_t left = leavesOfLeft(leaves);
    const T *leftValues = reduce(left, ofLeft, ofLeft);
    const T *rightValues = reduce(leaves - left, ofRight, ofRight);
    combine(reduction, leftValues, rightValues, elements, out);
    return out;
  }

private:
  /// Adds up the next `count` leaves by `add`, if they are a node of so many
  /// operands; returns whether they are.
  template <int count, typename Add>
  bool addLeaves(int64_t leaves, float *out, Add add) {
    if (leaves != count || reduction != Reduction::Sum)
      return false;
    std::array<const float *, count> in;
    for (int i = 0; i < count; ++i) {
      if (next[i].leaves != 1)
        return false;
      in[i] = static_cast<const float *>(next[i].data) + offset;
    }
    next += count;
    add(in, elements, out);
    return true;
  }

  const T *load(const InMemory *values, T *into) const {
    if constexpr (std::is_same_v<T, InMemory>)
      return values;
    else
      for (int64_t i = 0; i < elements; ++i)
        into[i] = fromBF16(values[i]);
    return into;
  }

  const Reduction reduction;
  const ReduceOperand *next;
  const int64_t offset, elements;
};

} // namespace

/// Calls `reducePart(first, elements)` for the parts of a block.
template <typename ReducePart>
static void forEachPart(int64_t elements, ReducePart reducePart) {
  for (int64_t first = 0; first < elements; first += partElements)
    reducePart(first, std::min(partElements, elements - first));
}

static int64_t numLeaves(absl::Span<const ReduceOperand> in) {
  int64_t leaves = 0;
  for (const ReduceOperand &operand : in)
    leaves += operand.leaves;
  return leaves;
}

template <typename T>
static void reduceTyped(Reduction reduction, absl::Span<const ReduceOperand> in,
                        int64_t offset, int64_t elements, void *out) {
  forEachPart(elements, [&](int64_t first, int64_t count) {
    T ofLeft[partElements], *result = static_cast<T *>(out) + first;
    PartReducer<T> part(reduction, in.data(), offset + first, count);
    const T *values = part.reduce(numLeaves(in), ofLeft, result);
    if (values != result)
      std::copy_n(values, count, result);
  });
}

static void reduceBF16(Reduction reduction, absl::Span<const ReduceOperand> in,
                       int64_t offset, int64_t elements, void *out) {
  forEachPart(elements, [&](int64_t first, int64_t count) {
    float result[partElements];
    PartReducer<float, uint16_t> part(reduction, in.data(), offset + first,
                                      count);
    part.reduce(numLeaves(in), result, result);
    for (int64_t i = 0; i < count; ++i)
      static_cast<uint16_t *>(out)[first + i] = toBF16(result[i]);
  });
}

void shardc::rt::reduceBlock(DType dtype, Reduction reduction,
                             absl::Span<const ReduceOperand> in, int64_t offset,
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
