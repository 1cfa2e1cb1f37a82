//===- Gemm.cpp - GEMMs of a plan -----------------------------------------===//

#include "backends/cpu/Gemm.h"

#include "backends/cpu/PackedGemm.h"

#include <cmath>
#include <cstring>

using namespace shardc::rt;

float shardc::rt::roundTo(Precision precision, float value) {
  if (precision == Precision::Highest || !std::isfinite(value))
    return value;
  int dropped = precision == Precision::TF32 ? 13 : 16;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  // Half a unit, less one bit where the last bit kept is even.
  bits += (uint32_t(1) << (dropped - 1)) - 1 + (bits >> dropped & 1);
  bits &= ~uint32_t(0) << dropped;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

const char *shardc::rt::describeHalfGemms(const std::string &cpuTarget) {
  if (MicroKernels::upTo(cpuTarget).multipliesPairs())
    return "GEMMs add up pairs of products, by AVX512-BF16";
  return MicroKernels::best().multipliesPairs()
             ? "GEMMs widen their factors to f32: kernels are for a CPU "
               "without AVX512-BF16"
             : "GEMMs widen their factors to f32: the CPU has no AVX512-BF16";
}

std::unique_ptr<PreparedGemm>
PreparedGemm::prepare(const GemmCommand &command, GemmTypes types,
                      GemmCalls calls, const GemmPieces &pieces,
                      const MicroKernels &kernels) {
  return std::make_unique<PackedGemm>(command, calls, kernels,
                                      /*addends=*/1, pieces, types);
}

std::unique_ptr<PreparedGemm> PreparedGemm::prepareSum(
    const GemmCommand &command, GemmTypes types, int64_t addends,
    GemmCalls calls, const GemmPieces &pieces, const MicroKernels &kernels) {
  if (types.factors != DType::F32 || !PackedGemm::canAdd(command, addends))
    return nullptr;
  return std::make_unique<PackedGemm>(command, calls, kernels, addends, pieces);
}
