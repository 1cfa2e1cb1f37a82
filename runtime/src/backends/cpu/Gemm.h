//===- Gemm.h - GEMMs through oneDNN ----------------------------*- C++ -*-===//
//
// A GEMM is cut into tiles by its shape alone, so that any number of workers
// gives the same bits; a tile is one call of oneDNN, which runs on the calling
// thread (the workers set OpenMP to one thread).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_GEMM_H
#define SHARDC_RT_SRC_BACKENDS_CPU_GEMM_H

#include "plan/PlanSpec.h"
#include "shardc-rt/DType.h"

#include "absl/status/statusor.h"

#include <memory>

namespace shardc::rt {

/// `value` rounded to the fraction of a precision, to nearest, ties to even;
/// NaN and infinities are kept.
float roundTo(Precision precision, float value);

/// A GEMM, ready to run on any device. If its precision is below the highest,
/// factors of f32 are rounded to it first; those of bf16 stay. The arithmetic
/// is that of f32 in either case. Thread-safe.
class PreparedGemm {
public:
  static absl::StatusOr<std::unique_ptr<PreparedGemm>>
  prepare(const GemmCommand &command, GemmTypes types);
  virtual ~PreparedGemm() = default;

  virtual int64_t numTiles() const = 0;
  /// Computes tile `tile`; `bias` may be null when there is none. An error if
  /// oneDNN fails.
  [[nodiscard]] virtual absl::Status run(const void *a, const void *b,
                                         const void *bias, void *c,
                                         int64_t tile) const = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_GEMM_H
