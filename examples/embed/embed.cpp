//===- embed.cpp - Training inside of a host application ------------------===//
//
//   embed PLAN.shardc [STEPS]
//
// Loads the plan of a regression on inputs x and y, feeds batches it makes
// itself, steps, and reads losses and a parameter back.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Context.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Plan.h"

#include <cstdio>
#include <cstdlib>
#include <random>

using namespace shardc::rt;

static int fail(const absl::Status &status) {
  std::fprintf(stderr, "embed: %s\n", status.ToString().c_str());
  return 2;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: embed PLAN.shardc [STEPS]\n");
    return 1;
  }
  int steps = argc > 2 ? std::atoi(argv[2]) : 50;

  auto plan = Plan::loadFile(argv[1]);
  if (!plan.ok())
    return fail(plan.status());
  auto context = Context::create();
  if (!context.ok())
    return fail(context.status());
  auto executor = Executor::create(**context, *plan);
  if (!executor.ok())
    return fail(executor.status());
  if (auto status = (*executor)->initializeParameters(); !status.ok())
    return fail(status);

  // Global arrays: the runtime gives every device its shard.
  HostArray x, y;
  for (const TensorInfo &tensor : (*plan)->tensors()) {
    if (tensor.name == "x")
      x = HostArray(tensor.dtype, tensor.shape);
    if (tensor.name == "y")
      y = HostArray(tensor.dtype, tensor.shape);
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int step = 0; step < steps; ++step) {
    int64_t columns = x.shape[1];
    for (float &value : x.values<float>())
      value = normal(random);
    for (int64_t row = 0; row < y.shape[0]; ++row) {
      float sum = 0;
      for (int64_t column = 0; column < columns; ++column) {
        float value = x.values<float>()[row * columns + column];
        sum += value * value;
      }
      y.values<float>()[row] = sum;
    }
    auto result = (*executor)->step({{"x", x.view()}, {"y", y.view()}});
    if (!result.ok())
      return fail(result.status());
    if (step % 10 == 0 || step + 1 == steps)
      std::printf("step %d loss %g\n", step, result->loss);
  }
  auto bias = (*executor)->getTensor("b0");
  if (!bias.ok())
    return fail(bias.status());
  std::printf("b0[0] = %g\n", bias->values<float>()[0]);
}
