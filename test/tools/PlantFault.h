//===- PlantFault.h - Possible faults of a partitioner ----------*- C++ -*-===//

#ifndef SHARDC_TEST_TOOLS_PLANTFAULT_H
#define SHARDC_TEST_TOOLS_PLANTFAULT_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardc::test {

/// A fault that can be planted in a module.
struct Fault {
  mlir::Operation *op;
  std::string what;
  std::function<void()> plant;
};

/// All faults of the programs of a pipeline's ranks, in `module`: a message to
/// another rank, or in the place of another one; rows, or an operand, of
/// another microbatch; a summand or the sum so far left out. They are in the
/// same order in a copy of the module.
std::vector<Fault> getRankFaults(mlir::ModuleOp module);

/// Plants one fault in the partitioned programs of `module`, which stay valid:
/// a collective or a mask left out, a group over other axes or in another
/// order, a shape kept but the wrong elements in it. Returns a description, or
/// "" if there is no place for a fault. `seed` chooses.
std::string plantFault(mlir::ModuleOp module, uint64_t seed);

} // namespace shardc::test

#endif // SHARDC_TEST_TOOLS_PLANTFAULT_H
