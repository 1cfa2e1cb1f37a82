//===- VerifyPartition.h - The proof of a partition -------------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_VERIFYPARTITION_H
#define SHARDC_LIB_PIPELINES_VERIFYPARTITION_H

#include "shardc/Pipelines/Phases.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// A pass that stands before phase `partition` (the one numbered `partition`)
/// and changes nothing: on a copy of the module, with the planner's decisions
/// and small sizes, it runs the phases up to `collectives`, or `last` if that
/// comes first, and after each compares the program with the global one in the
/// reference interpreter. Ends with a remark on what was compared, or with an
/// error where the programs diverge, of which `state` learns.
std::unique_ptr<mlir::Pass>
createVerifyPartitionPass(const CompileOptions &options, int partition,
                          int last, CompileState &state);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_VERIFYPARTITION_H
