//===- Gemm.h - GEMMs of a plan ---------------------------------*- C++ -*-===//
//
// A GEMM is cut into tasks that the workers share. The order of additions is a
// matter of its shape alone, so that any number of workers gives the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_GEMM_H
#define SHARDC_RT_SRC_BACKENDS_CPU_GEMM_H

#include "backends/cpu/MicroKernels.h"
#include "plan/PlanSpec.h"
#include "shardc-rt/DType.h"

#include <memory>

namespace shardc::rt {

/// `value` rounded to the fraction of a precision, to nearest, ties to even;
/// NaN and infinities are kept.
float roundTo(Precision precision, float value);

/// How a factor lies in memory, row by row: as a whole, or in pieces, blocks of
/// its rows or of its columns.
struct MatrixPieces {
  /// Rows or columns of each piece but the last; 0: the factor is whole.
  int64_t extent = 0;
  bool areRows = false;
  int64_t rowStride = 0; ///< From a row of a piece to the next, in elements.
  /// From a piece to the next, in elements; 0: they are anywhere.
  int64_t distance = 0;

  bool isWhole() const { return extent == 0; }
};

/// Of the matrices of a GEMM, which is one of f32 and no batch unless they are
/// whole.
struct GemmPieces {
  MatrixPieces a = {}, b = {};
  /// Blocks of so many columns of c are stored one after the other, a multiple
  /// of `columnsOfPanels`; 0: c is stored as a whole.
  int64_t columnsOfC = 0;

  /// Of the widest panel of any version.
  static constexpr int64_t columnsOfPanels = 32;
};

/// How kernels for `cpuTarget` multiply factors of bf16 on this CPU, as a
/// header says it. The bits are the same.
const char *describeHalfGemms(const std::string &cpuTarget);

/// The addresses of a GEMM's operands. That of a factor in pieces is the
/// address of the first one, or, if they are anywhere, of a list of theirs.
struct GemmOperands {
  const void *a, *b;
  const void *bias; ///< Null if there is none.
  void *c;
  void *packed = nullptr; ///< The shared factor, if it is packed.
  /// Of a sum of GEMMs a and b of the second and further ones, in turn.
  const void *const *further = nullptr;

  const void *factorA(int64_t addend) const {
    return addend == 0 ? a : further[2 * addend - 2];
  }
  const void *factorB(int64_t addend) const {
    return addend == 0 ? b : further[2 * addend - 1];
  }
};

/// How many GEMMs of one shape run together, with how many different factors.
/// Work is divided by it; the bits do not depend on it.
struct GemmCalls {
  int64_t count = 1, distinctA = 1, distinctB = 1;
};

/// A GEMM, ready to run on any device. If its precision is below the highest,
/// factors of f32 are rounded to it first; those of bf16 stay. The arithmetic
/// is that of f32 in either case. Thread-safe.
///
/// It consists of rounds. In each one, the tasks that pack a part of one factor
/// come first, if there are any, and when all have ended, the tiles. Tasks of a
/// kind may run in any order and at the same time.
class PreparedGemm {
public:
  static std::unique_ptr<PreparedGemm>
  prepare(const GemmCommand &command, GemmTypes types, GemmCalls calls = {},
          const GemmPieces &pieces = {},
          const MicroKernels &kernels = MicroKernels::best());
  /// The sum of `addends` GEMMs of a shape, with the bits that come of adding
  /// their results in the order of a tree (ReductionTree.h). Null where that
  /// takes the memory of results: of bf16, of many terms or a bias.
  static std::unique_ptr<PreparedGemm>
  prepareSum(const GemmCommand &command, GemmTypes types, int64_t addends,
             GemmCalls calls = {}, const GemmPieces &pieces = {},
             const MicroKernels &kernels = MicroKernels::best());
  virtual ~PreparedGemm() = default;

  virtual int64_t numRounds() const { return 1; }
  virtual int64_t numTiles() const = 0;
  /// Computes tile `tile` of round `round`, which reads what the round has
  /// packed in place of the shared factor.
  virtual void run(const GemmOperands &operands, int64_t round,
                   int64_t tile) const = 0;

  /// The factor that all tiles read and that is packed for them.
  enum class SharedFactor { None, A, B };
  virtual SharedFactor sharedFactor() const { return SharedFactor::None; }
  /// The size of `GemmOperands::packed`, which every round writes anew. Best
  /// aligned to 64 bytes.
  virtual uint64_t packedBytes() const { return 0; }
  virtual int64_t numPackTasks(int64_t /*round*/) const { return 0; }
  /// Packs a part of the shared factor, which is at `factors[0]`; of a sum of
  /// GEMMs those of all.
  virtual void pack(const void *const * /*factors*/, void * /*packed*/,
                    int64_t /*round*/, int64_t /*task*/) const {}
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_GEMM_H
