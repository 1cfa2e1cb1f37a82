//===- Permutations.h - Permutations as lists of numbers --------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHARDC_IR_PERMUTATIONS_H
#define SHARDC_DIALECT_SHARDC_IR_PERMUTATIONS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace shardc {

/// Whether `numbers` are 0 to `size` - 1 in some order.
inline bool isPermutation(llvm::ArrayRef<int64_t> numbers, int64_t size) {
  llvm::SmallVector<int64_t> sorted(numbers);
  llvm::sort(sorted);
  return llvm::equal(sorted, llvm::seq<int64_t>(0, size));
}

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_PERMUTATIONS_H
