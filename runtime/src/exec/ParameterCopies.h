//===- ParameterCopies.h - When copies of parameters are made ---*- C++ -*-===//
//
// A plan may keep rounded copies of parameters, which its programs write with
// the parameters. After anybody else has written one, "round_parameters" has to
// run before the next program. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PARAMETERCOPIES_H
#define SHARDC_RT_SRC_EXEC_PARAMETERCOPIES_H

#include "plan/PlanSpec.h"

#include <optional>

namespace shardc::rt {

class ParameterCopies {
public:
  /// Nothing has been made yet.
  explicit ParameterCopies(const PlanSpec &plan);

  /// The runtime has written a tensor.
  void noteWrite(const TensorSpec &tensor) {
    areStale |= tensor.role == Role::Parameter;
  }

  /// The number of the program to run before the next one, which the caller
  /// then does; none if the copies are those of the parameters.
  std::optional<size_t> takeRounding();

private:
  std::optional<size_t> rounding;
  bool areStale = true;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PARAMETERCOPIES_H
