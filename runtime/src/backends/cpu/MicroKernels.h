//===- MicroKernels.h - Products of packed panels ---------------*- C++ -*-===//
//
// The innermost part of a packed GEMM (PackedGemm.h), which Van Zee and van de
// Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality" (ACM
// TOMS 41(3), 2015), call the micro-kernel: a tile of the result stays in
// registers while a panel of a and one of b stream past it. It exists for each
// vector width, number of rows and number of vectors.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_MICROKERNELS_H
#define SHARDC_RT_SRC_BACKENDS_CPU_MICROKERNELS_H

#include <cstdint>
#include <string>

namespace shardc::rt {

/// What a micro-kernel multiplies: element (i, l) of a is at i·aRow + l·aTerm,
/// and row l of b, whose elements are side by side, at l·bTerm. Several addends
/// follow one another.
struct MicroFactors {
  const float *a, *b;
  int64_t aRow, aTerm, bTerm;
  int64_t addends = 1;      ///< `mostAddends` at most.
  float *packedB = nullptr; ///< Where kernels that pack put b; null: nowhere.
};

/// The place of a tile of the result, and what happens to it when its sums are
/// there: c = relu?(sums + c? + bias?), or the same rounded to bf16 in `half`.
struct MicroTile {
  float *c;                    ///< Not stored where there is a `half`.
  int64_t cRow, cColumn;       ///< Distances of elements; one of them is 1.
  int64_t columns;             ///< The first so many are stored.
  bool adds;                   ///< To the old c.
  const float *bias;           ///< Of the first element; null: none.
  int64_t biasRow, biasColumn; ///< Distances as of c: one is 0, the other 1.
  bool relu;
  uint16_t *half = nullptr; ///< The place of the first element; null: none.
  int64_t halfRow = 0, halfColumn = 0; ///< Distances of its elements.
  /// So many panels of b, packed one after the other, and their tiles of c,
  /// side by side.
  int64_t panels = 1;
  /// Sums of earlier terms, which these are added to, in rows as wide as the
  /// panel of b; null: none.
  const float *earlier = nullptr;
};

/// Multiplies `terms` columns of a by as many rows of b; at least one. Each
/// element is the sum of its products in order, by fused multiply-adds that
/// begin at 0, whatever the kernel: the bits do not depend on the sizes of
/// panels. Such sums of several addends are added up in the order of a tree
/// (ReductionTree.h).
using MicroKernel = void (*)(int64_t terms, const MicroFactors &factors,
                             const MicroTile &tile);

/// The kernels for one kind of CPU. Panels of b are a whole number of vectors
/// wide.
struct MicroKernels {
  static constexpr int64_t mostAddends = 511;
  /// Of a tile of any kernel.
  static constexpr int64_t mostElements = 14 * 32;

  int64_t maxRows;     ///< Of a panel of a.
  int64_t maxTallRows; ///< Where panels of b have one vector.
  int64_t lanes;       ///< Of a vector; a power of two.
  int64_t maxVectors;  ///< Of a panel of b: 2.
  /// What a kernel is for. The bits are the same.
  enum class Use {
    Packed,  ///< Panels of b that have been packed.
    InPlace, ///< Those that have not: it fetches what comes next, and packs.
    Sum,     ///< Packed panels of several addends.
    Pairs,   ///< Those of two terms of bf16 in place of one of f32.
  };
  /// By use, then by rows less 1, by vectors less 1, and by whether rows of a
  /// are adjacent.
  const MicroKernel *kernels[4];
  /// Multiply-adds of vectors that begin in a cycle; 1 where the CPU computes
  /// one of 512 bits in two halves.
  double multiplyAddsPerCycle = 2;
  /// Kernels with shorter vectors, where this CPU computes as much with these;
  /// null: there are none.
  const MicroKernels *narrower = nullptr;

  int64_t maxColumns() const { return lanes * maxVectors; }
  /// For a panel of b of `columns`, with padding. If `rowsAreAdjacent`, `aRow`
  /// of the factors is 1; otherwise `aTerm` is.
  MicroKernel kernel(Use use, int64_t rows, int64_t columns,
                     bool rowsAreAdjacent) const {
    return kernels[static_cast<int>(use)]
                  [(rows - 1) * 4 + (columns > lanes) * 2 + rowsAreAdjacent];
  }

  /// Whether there are kernels for pairs. The second product of a pair is added
  /// first, and subnormal numbers are 0, as other kernels have it if the caller
  /// sees to both: the bits are the same.
  bool multipliesPairs() const { return kernels[static_cast<int>(Use::Pairs)]; }

  /// For CPUs with AVX-512 and its instructions for bf16, with AVX-512, with
  /// AVX2 and FMA, and for others, where multiplication and addition round one
  /// by one.
  static const MicroKernels &avx512bf16();
  static const MicroKernels &avx512();
  static const MicroKernels &avx2();
  static const MicroKernels &portable();
  /// Those for this CPU.
  static const MicroKernels &best();
  /// Those for this CPU with vectors no wider than `cpuTarget` has, as
  /// "x86-64-v3"; `best` if that is empty.
  static const MicroKernels &upTo(const std::string &cpuTarget);
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_MICROKERNELS_H
