//===- Arrays.h - Global arrays and a plan's tensors ------------*- C++ -*-===//
//
// Checks and conversions that executors on all devices share.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_ARRAYS_H
#define SHARDC_RT_SRC_EXEC_ARRAYS_H

#include "plan/PlanSpec.h"
#include "shardc-rt/Executor.h"

namespace shardc::rt {

/// Number of the tensor `name`. NotFound: the plan has none. InvalidArgument:
/// it is a copy of a parameter, which the executor keeps for itself.
absl::StatusOr<size_t> findTensor(const PlanSpec &plan, absl::string_view name);

/// The same of a parameter or state. InvalidArgument: it is none.
absl::StatusOr<size_t> findPersistent(const PlanSpec &plan,
                                      absl::string_view name);

/// Number of the program `name`. NotFound: the plan has none. InvalidArgument:
/// it is not for users to run.
absl::StatusOr<size_t> findProgram(const PlanSpec &plan,
                                   absl::string_view name);

/// InvalidArgument: `array` is not of the type or shape of `tensor`, has no
/// data, or holds a label outside of the classes, with its row.
absl::Status checkArray(const TensorSpec &tensor, ArrayView array);

/// InvalidArgument: `out`, where the array of the tensor `name` should go, is
/// null.
absl::Status checkRoom(absl::string_view name, const void *out);

/// Checks what program number `program` gets. InvalidArgument names the input
/// or label that is missing, that no program takes, or that `checkArray`
/// refuses. Those that other programs take are ignored.
absl::Status checkInputs(const PlanSpec &plan, size_t program,
                         const NamedArrays &inputs);

/// The devices at position 0 of all mesh axes but those that `over` marks,
/// ascending.
std::vector<int64_t> firstDevices(const Mesh &mesh,
                                  const std::vector<bool> &over);

/// Of `range` the first devices of those with the same position on all axes
/// that `over` marks, ascending.
std::vector<int64_t> firstDevices(const Mesh &mesh,
                                  const std::vector<bool> &over,
                                  DeviceRange range);

/// The first of the devices that hold each shard, ascending: of all, or of
/// `range`.
std::vector<int64_t> holdersOf(const Mesh &mesh, const Sharding &sharding);
std::vector<int64_t> holdersOf(const Mesh &mesh, const Sharding &sharding,
                               DeviceRange range);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_ARRAYS_H
