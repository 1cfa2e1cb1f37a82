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

/// Merges small GEMMs into large ones where operands are contiguous in memory.
/// Terms of a sum whose rows of a (transposed) and b follow one another become
/// one GEMM with a longer k, unless they have to be added `inOrder`. GEMMs with
/// the same b whose rows of a and c follow one another become one with a larger
/// m. Changes `gemm` accordingly.
void mergeGemms(GemmCommand &gemm, GemmTypes types, bool inOrder,
                std::vector<GemmPointers> &gemms);

/// The GEMMs of command `command` for all devices that compute copies of its
/// results, merged; `gemm`, its own, changes accordingly.
std::vector<GemmPointers> bindGemms(const ProgramBuffers &buffers,
                                    uint32_t command, GemmCommand &gemm);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MERGEGEMMS_H
