//===- VerifyPartition.h - Runs the partition check in a pipeline ---------===//

#ifndef SHARDC_LIB_PIPELINES_VERIFYPARTITION_H
#define SHARDC_LIB_PIPELINES_VERIFYPARTITION_H

#include "shardc/Pipelines/Phases.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// A pass before phase `partition` (the one numbered `partition`), which leaves
/// the module as it is. On a copy with the planner's decisions and small sizes
/// it runs the phases up to `collectives`, or `last` if that comes first. After
/// each it compares the program with the global one in the reference
/// interpreter. With a pipeline it goes on from `collectives` to `schedule` and
/// compares the programs of the ranks. Ends with a remark on the extent of the
/// check, or with an error where the programs diverge, which also sets
/// `hasBrokenContract` of `state`.
std::unique_ptr<mlir::Pass>
createVerifyPartitionPass(const CompileOptions &options, int partition,
                          int last, CompileState &state);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_VERIFYPARTITION_H
