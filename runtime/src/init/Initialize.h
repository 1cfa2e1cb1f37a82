//===- Initialize.h - Initial values of parameters --------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_INIT_INITIALIZE_H
#define SHARDC_RT_SRC_INIT_INITIALIZE_H

#include "shardc-rt/DType.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace shardc::rt {

/// The initial value of a parameter or state. Constant: `a`. Normal: mean a,
/// standard deviation b. TruncatedNormal: a standard normal cut to [-2, 2],
/// times b, plus a. Uniform: [a, b).
struct InitializerSpec {
  enum class Kind { Constant, Normal, TruncatedNormal, Uniform };
  Kind kind = Kind::Constant;
  double a = 0;
  double b = 0;
};

/// Writes the shard of a tensor that starts at `start` and has `validShape`
/// elements into `out`, whose rows have the strides of `localShape`; padding is
/// left alone. An element depends on the seed, the tensor's name and its global
/// index only, so that every mesh holds the same bits.
[[nodiscard]] absl::Status initializeShard(
    const InitializerSpec &spec, uint64_t seed, absl::string_view tensorName,
    DType dtype, absl::Span<const int64_t> globalShape,
    absl::Span<const int64_t> start, absl::Span<const int64_t> validShape,
    absl::Span<const int64_t> localShape, void *out);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_INIT_INITIALIZE_H
