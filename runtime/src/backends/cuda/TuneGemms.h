//===- TuneGemms.h - The fastest algorithms of GEMMs ------------*- C++ -*-===//
//
// Before programs are prepared, every GEMM is timed with the first algorithms
// of the library's heuristics. Only one rank times: ranks that compute the same
// values have to compute the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_TUNEGEMMS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_TUNEGEMMS_H

#include "backends/cuda/GemmChoices.h"
#include "backends/cuda/LocalGpus.h"

namespace shardc::rt::cuda {

/// The algorithms for the GEMMs of `plan`: those in the file
/// `options.gemmCachePath`, and for GEMMs that it lacks the fastest on the
/// first GPU, which are added to the file. Meanwhile their operands take as
/// much memory there as an arena, so that none is allocated yet. All ranks call
/// it and get the same; rank 0 alone times, with a pipeline also the GEMMs of
/// others. Null if there is no path or the plan has no GEMMs.
[[nodiscard]] absl::StatusOr<std::unique_ptr<GemmChoices>>
tuneGemms(const LocalGpus &local, const PlanSpec &plan,
          const CudaOptions &options);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_TUNEGEMMS_H
