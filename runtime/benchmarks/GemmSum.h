//===- GemmSum.h - The GEMMs of a step, by oneDNN ---------------*- C++ -*-===//
//
// A peer of train steps: all GEMMs of an MLP's forward and backward pass and
// nothing else, one after the other, each by oneDNN on all cores.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_BENCHMARKS_GEMMSUM_H
#define SHARDC_RT_BENCHMARKS_GEMMSUM_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardc::rt::bench {

class GemmSum {
public:
  /// The GEMMs of one step of layers of these sizes: forward, and the
  /// gradients of all weights and of all activations but the input.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<GemmSum>>
  create(int64_t batch, const std::vector<int64_t> &layers);
  ~GemmSum();

  /// Runs all GEMMs once.
  [[nodiscard]] absl::Status run();

private:
  struct Gemm;
  GemmSum();

  std::vector<std::unique_ptr<Gemm>> gemms;
};

} // namespace shardc::rt::bench

#endif // SHARDC_RT_BENCHMARKS_GEMMSUM_H
