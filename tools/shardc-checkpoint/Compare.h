//===- Compare.h - Two checkpoints side by side -----------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_CHECKPOINT_COMPARE_H
#define SHARDC_TOOLS_SHARDC_CHECKPOINT_COMPARE_H

#include "shardc-rt/Checkpoint.h"

#include <ostream>

namespace shardc::checkpoint {

/// Prints the differences between two checkpoints that pass `verify`: their
/// progress, tensors that one of them lacks, and how far values are apart.
/// Returns whether parameters, states and progress are the same. DataLoss: a
/// file cannot be read any more.
[[nodiscard]] absl::StatusOr<bool>
compare(const rt::Checkpoint &a, const rt::Checkpoint &b, std::ostream &out);

} // namespace shardc::checkpoint

#endif // SHARDC_TOOLS_SHARDC_CHECKPOINT_COMPARE_H
