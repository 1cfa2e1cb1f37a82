//===- CallOrders.h - Rows first, or devices first --------------*- C++ -*-===//
//
// The calls of a kernel, one for each device, are tiles of rows, and a worker
// has consecutive tasks. In the order of devices it computes all rows of some.
// Tensor parallelism has devices read the same rows: then it computes some rows
// of all devices, so that it reads only these rows; and what follows for all
// devices, such as their sum, finds there what the same worker has written.
// The bits do not depend on the order.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_CALLORDERS_H
#define SHARDC_RT_SRC_EXEC_CALLORDERS_H

#include "exec/PreparedSteps.h"

#include "absl/container/flat_hash_map.h"

namespace shardc::rt {

/// Chooses `Step::together` for the steps of a program, in their order. Not
/// thread-safe.
class CallOrders {
public:
  explicit CallOrders(int workers) : workers(workers) {}

  /// Neighbouring calls of a kernel are taken together that read tiles of one
  /// operand, if workers cannot have whole groups of them, as many each; and
  /// those that read what is written by calls that are taken together.
  void choose(Step &step);

private:
  /// How many neighbouring calls have the same place of an operand; 1 if these
  /// are not as many everywhere.
  static int64_t callsAt(const Step &step, int64_t operand);

  const int workers;
  /// By place, of the step that wrote it last.
  absl::flat_hash_map<const void *, int64_t> togetherOf;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_CALLORDERS_H
