//===- PlantFault.h - Possible faults of a partitioner ----------*- C++ -*-===//

#ifndef SHARDC_TEST_TOOLS_PLANTFAULT_H
#define SHARDC_TEST_TOOLS_PLANTFAULT_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

namespace shardc::test {

/// Plants one fault in the partitioned programs of `module`, which stay valid:
/// a collective or a mask left out, a group over other axes or in another
/// order, a shape kept but the wrong elements in it. Returns a description, or
/// "" if there is no place for a fault. `seed` chooses.
std::string plantFault(mlir::ModuleOp module, uint64_t seed);

} // namespace shardc::test

#endif // SHARDC_TEST_TOOLS_PLANTFAULT_H
