//===- PlanHandle.h - A plan of the C API -----------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CAPI_PLANHANDLE_H
#define SHARDC_RT_SRC_CAPI_PLANHANDLE_H

#include "shardc-rt/Plan.h"
#include "shardc-rt/c.h"

#include <memory>
#include <vector>

/// A plan, with the lists that its structures point to. Immutable: threads may
/// share one.
struct shardc_plan {
  explicit shardc_plan(std::shared_ptr<const shardc::rt::Plan> plan);

  /// Names of axes, and how many of them each dimension has.
  struct Axes {
    std::vector<const char *> names;
    std::vector<int32_t> numbers;
  };

  std::shared_ptr<const shardc::rt::Plan> plan;
  std::vector<Axes> tensors;
  /// By program.
  std::vector<std::vector<Axes>> collectives;
};

#endif // SHARDC_RT_SRC_CAPI_PLANHANDLE_H
