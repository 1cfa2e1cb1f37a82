//===- PartialSums.h - Where ops may work on partial sums -------*- C++ -*-===//
//
// A contraction over a sharded dimension leaves a partial sum on every device.
// It may stay partial as long as every user is linear in it and works on
// partial sums over the same axes; otherwise it is reduced where it is
// produced. Among the permitted places, reductions go where they reduce the
// fewest bytes, and at equal bytes as early as possible.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_PARTIALSUMS_H
#define SHARDC_SHARDING_PARTIALSUMS_H

#include "shardc/Sharding/ShardingGraph.h"

namespace shardc {

/// For every op of `graph` with the factor shardings `factors`, the axes over
/// which it works on partial sums; these axes then shard no factor of the op.
/// `layouts` has the layout of every value when reduced.
std::vector<PartialAxes> findPartialSums(const ShardingGraph &graph,
                                         llvm::ArrayRef<FactorAxes> factors,
                                         llvm::ArrayRef<Layout> layouts);

} // namespace shardc

#endif // SHARDC_SHARDING_PARTIALSUMS_H
