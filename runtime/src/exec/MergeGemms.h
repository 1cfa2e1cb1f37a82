//===- MergeGemms.h - One GEMM instead of many ------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_MERGEGEMMS_H
#define SHARDC_RT_SRC_EXEC_MERGEGEMMS_H

#include "exec/ProgramBuffers.h"

#include <vector>

namespace shardc::rt {

/// The operands of the GEMM of one device, or of a sum of several GEMMs.
struct GemmPointers {
  struct Factors {
    char *a, *b;
  };
  /// The factors of the GEMMs to add up, in this order: one or more.
  std::vector<Factors> terms;
  char *bias; ///< Null if there is none.
  char *c;
};

/// GEMMs of one shape.
struct MergedGemms {
  GemmCommand command; ///< With the sides that they have by now.
  GemmPieces pieces;   ///< How their factors lie.
  std::vector<GemmPointers> calls;
};

/// Which factors may become pieces of one that are apart: not those that lie in
/// other pieces. Terms of a sum join both.
struct MayBeApart {
  bool a = true, b = true;
};

/// Merges small GEMMs into large ones where operands are contiguous in memory.
/// Terms of a sum whose rows of a (transposed) and b follow one another become
/// one GEMM with a longer k, unless they have to be added `inOrder`. GEMMs with
/// the same b whose rows of a and c follow one another become one with a larger
/// m. Rows of factors of f32 may also be at equal distances, as those of a
/// microbatch are, where they `may` be apart: then they are pieces.
void mergeGemms(GemmTypes types, bool inOrder, MergedGemms &gemms,
                MayBeApart may = {});

/// The GEMMs of command `command` for all devices that compute copies of its
/// results, merged.
MergedGemms bindGemms(const ProgramBuffers &buffers, uint32_t command,
                      MayBeApart may = {});

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MERGEGEMMS_H
