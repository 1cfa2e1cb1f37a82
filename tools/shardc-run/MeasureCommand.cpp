//===- MeasureCommand.cpp - What a command costs beyond its work ----------===//
//
// Workers that do nothing but meet do so in a fraction of the time that a
// command of a step costs: there each has to find what it has to do, in code
// and data that other commands have driven from the nearest caches, and they
// do not end at the same time. So whole steps are measured.
//
//===----------------------------------------------------------------------===//

#include "MeasureCommand.h"

#include "CompileInput.h"

#include "plan/PlanSpec.h"
#include "shardc-rt/HostArray.h"
#include "shardc-rt/Plan.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>

using namespace shardc;
using namespace shardc::run;
using namespace shardc::rt;

static constexpr int64_t rows = 64, columns = 16;
static constexpr int layers = 20;

/// A model of layers of which each takes a tenth of a microsecond or two.
static std::string makeModel() {
  const std::string batch =
                        absl::StrCat("tensor<", rows, "x", columns, "xf32>"),
                    weight =
                        absl::StrCat("tensor<", columns, "x", columns, "xf32>"),
                    bias = absl::StrCat("tensor<", columns, "xf32>");
  std::string arguments, body;
  std::string value = "%x";
  for (int layer = 0; layer < layers; ++layer) {
    absl::StrAppend(&arguments, ",\n    %w", layer, ": ", weight,
                    " {shardc.role = #shardc.parameter<\"w", layer,
                    "\", he_normal>},\n    %b", layer, ": ", bias,
                    " {shardc.role = #shardc.parameter<\"b", layer,
                    "\", constant(0.0)>}");
    absl::StrAppend(&body, "  %z", layer, " = shardc.linear ", value, ", %w",
                    layer, ", %b", layer, " : ", batch, ", ", weight, ", ",
                    bias, " -> ", batch, "\n");
    value = absl::StrCat("%z", layer);
    if (layer + 1 < layers) {
      absl::StrAppend(&body, "  %h", layer, " = shardc.relu ", value, " : ",
                      batch, "\n");
      value = absl::StrCat("%h", layer);
    }
  }
  return absl::StrCat(
      "module attributes {shardc.training = #shardc.training<loss = @loss, "
      "optimizer = <sgd, learning_rate = 0.001>>} {\n"
      "shardc.mesh @mesh <[\"data\" = 1]>\n"
      "func.func @loss(%x: ",
      batch, " {shardc.role = #shardc.input<\"x\">},\n    %y: ", batch,
      " {shardc.role = #shardc.label<\"y\">}", arguments,
      ") -> tensor<f32> {\n", body, "  %loss = shardc.mse ", value,
      ", %y : ", batch,
      " -> tensor<f32>\n  return %loss : tensor<f32>\n}\n}\n");
}

/// Those of one executor.
struct SmallLayers::Steps {
  /// Of one worker; null: the workers are the caller's.
  std::unique_ptr<Context> context;
  std::unique_ptr<Executor> executor;
  HostArray x{DType::F32, {rows, columns}}, y{DType::F32, {rows, columns}};

  absl::Status create(Context &workers, std::shared_ptr<const Plan> plan) {
    absl::StatusOr<std::unique_ptr<Executor>> made =
        Executor::create(workers, std::move(plan));
    if (!made.ok())
      return made.status();
    executor = *std::move(made);
    for (int64_t i = 0; i < rows * columns; ++i)
      x.values<float>()[i] = y.values<float>()[i] = float(i % 7) / 7;
    return executor->initializeParameters();
  }

  /// The best of `wanted` seconds.
  absl::StatusOr<double> time(double wanted) {
    using Clock = std::chrono::steady_clock;
    constexpr int steps = 20;
    auto since = [](Clock::time_point time) {
      return std::chrono::duration<double>(Clock::now() - time).count();
    };
    const auto begin = Clock::now();
    double best = 1e300;
    do {
      const auto start = Clock::now();
      for (int step = 0; step < steps; ++step) {
        auto result = executor->step({{"x", x.view()}, {"y", y.view()}});
        if (!result.ok())
          return result.status();
      }
      best = std::min(best, since(start) / steps);
    } while (since(begin) < wanted);
    return best;
  }
};

absl::StatusOr<SmallLayers> SmallLayers::create(Context &context) {
  CompileRequest request;
  request.path = "small layers";
  request.source = makeModel();
  const CompileOutcome outcome = compileInput(request);
  if (outcome.exitCode == exitWithoutCompiler)
    return absl::NotFoundError(outcome.diagnostics);
  if (outcome.exitCode != 0)
    return absl::InternalError(outcome.diagnostics);
  auto plan = Plan::parse(outcome.plan);
  if (!plan.ok())
    return plan.status();
  auto one = Context::create({1});
  if (!one.ok())
    return one.status();
  SmallLayers made;
  made.workers = context.workers().size();
  made.commands = double((*plan)->spec().programs[0].commands.size());
  made.onAll = std::make_shared<Steps>();
  made.onOne = std::make_shared<Steps>();
  made.onOne->context = *std::move(one);
  absl::Status status = made.onAll->create(context, *plan);
  status.Update(made.onOne->create(*made.onOne->context, *plan));
  if (!status.ok())
    return status;
  return made;
}

absl::StatusOr<SmallLayers::Times> SmallLayers::measure(double seconds) {
  absl::StatusOr<double> all = onAll->time(seconds / 2),
                         one = onOne->time(seconds / 2);
  if (!all.ok() || !one.ok())
    return all.ok() ? one.status() : all.status();
  return Times{*all, *one};
}

double SmallLayers::ofCommand(const Times &times) const {
  return (times.onAll - times.onOne / workers) / commands;
}
