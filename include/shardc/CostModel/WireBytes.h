//===- WireBytes.h - Wire bytes of collectives ------------------*- C++ -*-===//
//
// The one place with the formulas: bytes that one device sends, for a group of
// n devices, on padded sizes. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COSTMODEL_WIREBYTES_H
#define SHARDC_COSTMODEL_WIREBYTES_H

#include "shardc/Dialect/Shardc/IR/Enums.h"

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// "all_reduce" and so on.
inline llvm::StringRef toString(CollectiveKind kind) {
  return stringifyCollectiveKind(kind);
}

/// Wire bytes per device where a group of `groupSize` sees `bytes`:
///   all_reduce           2(n-1)/n of the tensor,
///   all_gather           (n-1)/n of the gathered tensor (n times a shard),
///   reduce_scatter       (n-1)/n of the tensor scattered (n times a shard),
///   all_to_all           (n-1)/n of the local tensor, padding included,
///   collective_permute   the local tensor,
///   send                 the local tensor, to one device of another stage.
/// Rounded up to whole bytes; 0 for a group of one.
int64_t getWireBytes(CollectiveKind kind, int64_t bytes, int64_t groupSize);

} // namespace shardc

#endif // SHARDC_COSTMODEL_WIREBYTES_H
