//===- GemmSteps.h - The steps of GEMMs -------------------------*- C++ -*-===//
//
// GEMMs of several devices are merged, and factors that they share are packed
// by a step of their own.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_GEMMSTEPS_H
#define SHARDC_RT_SRC_EXEC_GEMMSTEPS_H

#include "exec/GatheredFactors.h"
#include "exec/ScatteredSums.h"

namespace shardc::rt {

/// Makes steps of the GEMMs of a program. Not thread-safe.
class GemmSteps {
public:
  /// Adds them to `prepared`. Borrows all.
  GemmSteps(const ProgramBuffers &buffers, const GatheredFactors &gathered,
            const ScatteredSums &scattered, const MicroKernels &kernels,
            PreparedSteps &prepared)
      : buffers(buffers), gathered(gathered), scattered(scattered),
        kernels(kernels), prepared(prepared) {}

  /// The steps of `gemm`, command number `command` of the rank that `buffers`
  /// is at, for all devices that compute copies of its results.
  void add(uint32_t command, const GemmCommand &gemm);

  /// Packed factors begin at the first place again: no GEMM that follows runs
  /// together with one that was added before.
  void beginRound() { nextPacked = 0; }

private:
  struct Factor;
  struct Merged;
  /// Terms [begin, end) of a sum, and one factor of each.
  struct Terms {
    size_t begin, end;
  };
  using Factors = std::vector<char *>;

  void addMerged(uint32_t command, const GemmCommand &gemm);
  void addPacking(const Merged &gemms, Terms terms, int64_t round);
  void addTiles(const Merged &gemms, Terms terms, int64_t round);
  void addColumnSums(const GemmCommand &gemm);
  Factor factorOf(uint32_t buffer, uint64_t bytes, uint64_t own,
                  const MatrixPieces &joined) const;
  void addPieces(Step &step, const Factor &factor,
                 std::vector<uint32_t> &operands) const;
  void bindPieces(Step &step, const Factor &factor, char *address) const;

  const ProgramBuffers &buffers;
  const GatheredFactors &gathered;
  const ScatteredSums &scattered;
  const MicroKernels &kernels;
  PreparedSteps &prepared;
  /// Where packed factors of the next GEMM begin: GEMMs of one round of a
  /// pipeline, which run together, have places of their own.
  uint64_t nextPacked = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_GEMMSTEPS_H
