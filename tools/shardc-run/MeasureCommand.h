//===- MeasureCommand.h - What a command costs beyond its work --*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASURECOMMAND_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASURECOMMAND_H

#include "shardc-rt/Context.h"
#include "shardc-rt/Executor.h"

#include <memory>

namespace shardc::run {

/// Steps of a model of small layers, on all workers and on one alone.
class SmallLayers {
public:
  /// Compiles the model. NotFound: this program has no compiler.
  static absl::StatusOr<SmallLayers> create(rt::Context &context);

  /// Seconds of a step.
  struct Times {
    double onAll = 1e300, onOne = 1e300;
  };
  /// The best of `seconds` seconds.
  absl::StatusOr<Times> measure(double seconds);

  /// Seconds of a command on all workers beyond those of as many equal parts of
  /// one on one worker: until all have found it, and have met behind it.
  double ofCommand(const Times &times) const;

private:
  SmallLayers() = default;

  struct Steps;
  std::shared_ptr<Steps> onAll, onOne;
  double workers = 1, commands = 1;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASURECOMMAND_H
