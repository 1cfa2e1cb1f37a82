//===- SmallMeshes.h - Small meshes that represent a large one --*- C++ -*-===//
//
// Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_INTERPRETER_SMALLMESHES_H
#define SHARDC_LIB_INTERPRETER_SMALLMESHES_H

#include "StridedGaps.h"

namespace shardc {

int64_t getNumDevices(const MeshAxes &mesh);

/// Whether `mesh` is replaced by a smaller one if there is one that represents
/// it.
bool hasManyDevices(const MeshAxes &mesh);

/// The meshes that may represent `mesh`, best first. On them the same axes
/// shard, none of them by more, and `gaps` are the same products of axes. Those
/// without many devices come first, then those on which gaps compare alike,
/// then the smaller ones.
std::vector<MeshAxes> getSmallMeshes(const MeshAxes &mesh,
                                     const StridedGaps &gaps);

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_SMALLMESHES_H
