//===- ParameterCopies.cpp - When copies of parameters are made -----------===//

#include "exec/ParameterCopies.h"

using namespace shardc::rt;

ParameterCopies::ParameterCopies(const PlanSpec &plan) {
  for (size_t i = 0; i < plan.programs.size(); ++i)
    if (plan.programs[i].name == roundingProgram)
      rounding = i;
}

std::optional<size_t> ParameterCopies::takeRounding() {
  if (!areStale)
    return std::nullopt;
  areStale = false;
  return rounding;
}
