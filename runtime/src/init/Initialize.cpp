//===- Initialize.cpp - Initial values of parameters ----------------------===//
//
// Counter-based random numbers (Philox4x32-10: Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC11; by Random123). The counter is the global
// row-major index of the element, the key the seed and the tensor's name, so
// that a shard computes its own elements and every mesh gets the same bits.
//
//===----------------------------------------------------------------------===//

#include "init/Initialize.h"

#include "base/Convert.h"

#include "absl/strings/str_cat.h"

#include <Random123/philox.h>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace shardc::rt;

/// FNV-1a, 64 bits: part of the format of a run, hence not std::hash.
static uint64_t hashName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

/// Quantile of the standard normal distribution: Wichura, "Algorithm AS 241:
/// the percentage points of the normal distribution", Applied Statistics 37
/// (1988), PPND16; relative error about 1e-16.
static double normalQuantile(double p) {
  auto ratio = [](const double(&a)[8], const double(&b)[7], double r) {
    double numerator = a[7], denominator = b[6];
    for (int i = 6; i >= 0; --i)
      numerator = numerator * r + a[i];
    for (int i = 5; i >= 0; --i)
      denominator = denominator * r + b[i];
    return numerator / (denominator * r + 1.0);
  };
  static const double a[8] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                              1.9715909503065514427e3, 1.3731693765509461125e4,
                              4.5921953931549871457e4, 6.7265770927008700853e4,
                              3.3430575583588128105e4, 2.5090809287301226727e3};
  static const double b[7] = {4.2313330701600911252e1, 6.8718700749205790830e2,
                              5.3941960214247511077e3, 2.1213794301586595867e4,
                              3.9307895800092710610e4, 2.8729085735721942674e4,
                              5.2264952788528545610e3};
  static const double c[8] = {
      1.42343711074968357734e0,  4.63033784615654529590e0,
      5.76949722146069140550e0,  3.64784832476320460504e0,
      1.27045825245236838258e0,  2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static const double d[7] = {
      2.05319162663775882187e0,  1.67638483018380384940e0,
      6.89767334985100004550e-1, 1.48103976427480074590e-1,
      1.51986665636164571966e-2, 5.47593808499534494600e-4,
      1.05075007164441684324e-9};
  static const double e[8] = {
      6.65790464350110377720e0,  5.46378491116411436990e0,
      1.78482653991729133580e0,  2.96560571828504891230e-1,
      2.65321895265761230930e-2, 1.24266094738807843860e-3,
      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static const double f[7] = {
      5.99832206555887937690e-1, 1.36929880922735805310e-1,
      1.48753612908506148525e-2, 7.86869131145613259100e-4,
      1.84631831751005468180e-5, 1.42151175831644588870e-7,
      2.04426310338993978564e-15};
  double q = p - 0.5;
  if (std::fabs(q) <= 0.425)
    return q * ratio(a, b, 0.180625 - q * q);
  double r = std::sqrt(-std::log(q < 0 ? p : 1.0 - p));
  double value = r <= 5.0 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5.0);
  return q < 0 ? -value : value;
}

/// The value of the element with global index `index`.
static double valueAt(const InitializerSpec &spec, uint64_t seed, uint64_t name,
                      uint64_t index) {
  if (spec.kind == InitializerSpec::Kind::Constant)
    return spec.a;
  using Philox = r123::Philox4x32;
  Philox::ctr_type counter = {
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
       static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32)}};
  Philox::key_type key = {
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  Philox::ctr_type block = Philox()(counter, key);
  // 52 bits, centred in their interval: never 0, never 1.
  uint64_t bits = (static_cast<uint64_t>(block[0]) << 20) ^ (block[1] >> 12);
  double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-52;
  switch (spec.kind) {
  case InitializerSpec::Kind::Constant:
    return spec.a;
  case InitializerSpec::Kind::Normal:
    return spec.a + spec.b * normalQuantile(uniform);
  case InitializerSpec::Kind::TruncatedNormal: {
    // The distribution function at -2 and 2.
    constexpr double low = 0.022750131948179207, high = 0.9772498680518208;
    double p = low + (high - low) * uniform;
    return spec.a + spec.b * std::fmin(2.0, std::fmax(-2.0, normalQuantile(p)));
  }
  case InitializerSpec::Kind::Uniform:
    return spec.a + (spec.b - spec.a) * uniform;
  }
  return 0;
}

static void store(DType dtype, double value, void *out, int64_t index) {
  switch (dtype) {
  case DType::F32:
    static_cast<float *>(out)[index] = static_cast<float>(value);
    break;
  case DType::BF16:
    static_cast<uint16_t *>(out)[index] = toBF16(static_cast<float>(value));
    break;
  case DType::F64:
    static_cast<double *>(out)[index] = value;
    break;
  case DType::I32:
    static_cast<int32_t *>(out)[index] = static_cast<int32_t>(value);
    break;
  case DType::I64:
    static_cast<int64_t *>(out)[index] = static_cast<int64_t>(value);
    break;
  case DType::Bool:
    static_cast<uint8_t *>(out)[index] = value != 0;
    break;
  }
}

absl::Status shardc::rt::initializeShard(
    const InitializerSpec &spec, uint64_t seed, absl::string_view tensorName,
    DType dtype, absl::Span<const int64_t> globalShape,
    absl::Span<const int64_t> start, absl::Span<const int64_t> validShape,
    absl::Span<const int64_t> localShape, void *out) {
  if (spec.kind != InitializerSpec::Kind::Constant && !isFloat(dtype))
    return absl::InvalidArgumentError(
        absl::StrCat("\"", tensorName, "\" of type ", toString(dtype),
                     " cannot start with random numbers"));
  // The upper bound keeps the conversion to an integer defined.
  if (!isFloat(dtype) && !(std::fabs(spec.a) <= 0x1p31 - 1))
    return absl::InvalidArgumentError(
        absl::StrCat("\"", tensorName, "\" of type ", toString(dtype),
                     " cannot start at ", spec.a));
  if (numElements(validShape) == 0)
    return absl::OkStatus();
  uint64_t name = hashName(tensorName);
  int rank = globalShape.size();
  // Row by row; of a scalar there is one.
  int64_t rowSize = rank > 0 ? validShape[rank - 1] : 1;
  std::vector<int64_t> index(rank);
  for (;;) {
    uint64_t global = 0;
    int64_t local = 0;
    for (int dim = 0; dim < rank; ++dim) {
      global = global * globalShape[dim] + start[dim] + index[dim];
      local = local * localShape[dim] + index[dim];
    }
    for (int64_t i = 0; i < rowSize; ++i)
      store(dtype, valueAt(spec, seed, name, global + i), out, local + i);
    int dim = rank - 2;
    while (dim >= 0 && ++index[dim] == validShape[dim])
      index[dim--] = 0;
    if (dim < 0)
      return absl::OkStatus();
  }
}
