//===- ParameterState.h - Whether parameters hold values --------*- C++ -*-===//
//
// Parameters and optimizer states have no value at first, and lose it when a
// program that writes them fails midway: some are then updated and others are
// not. A plan may also keep shadow weights, parameters rounded to bf16.
// Programs write them with the parameters; after the host has written one,
// "round_parameters" has to run before the next program.
//
// Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PARAMETERSTATE_H
#define SHARDC_RT_SRC_EXEC_PARAMETERSTATE_H

#include "plan/PlanSpec.h"

#include "absl/status/status.h"

#include <optional>
#include <vector>

namespace shardc::rt {

/// Follows the parameters and states of one executor.
class ParameterState {
public:
  /// Nothing has a value yet. `plan` must outlive this.
  explicit ParameterState(const PlanSpec &plan);

  /// The host has written tensor `tensor` of the plan.
  void noteWrite(size_t tensor);

  /// The host has begun to write tensor `tensor`, and has not ended.
  void noteLoss(size_t tensor);

  /// Program `program` has not run to its end, or not as a whole. `why` is the
  /// predicate of a sentence with its name as subject.
  void noteFailure(size_t program, absl::string_view why);

  /// FailedPrecondition: tensor `tensor` has no value. Says why.
  absl::Status check(size_t tensor) const;
  /// The same for all parameters and states: whether a program may run.
  absl::Status checkAll() const;

  /// The number of the program that has to run before the next one, and is
  /// taken to have done so; none if shadow weights are up to date.
  std::optional<size_t> takeRounding();

private:
  const PlanSpec &plan;
  std::optional<size_t> rounding;
  bool areShadowsStale = true;
  std::vector<bool> hasValue;    ///< By tensor.
  std::vector<bool> writesState; ///< By program.
  std::string failure;           ///< Why values are lost; empty: never set.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PARAMETERSTATE_H
