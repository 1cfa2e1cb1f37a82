//===- PipelineFuzzTest.cpp - Edited plans with a pipeline ----------------===//
//
// Random edits of the tables of a pipeline. A plan is refused or runs to its
// end, and then has the same bits for any number of threads, with and without
// shared replicas.
//
//===----------------------------------------------------------------------===//

#include "TestPlan.h"

#include "exec/CpuExecutor.h"
#include "plan/PlanSpec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace shardc::rt;

namespace {

/// Edits one plan at random.
class Editor {
public:
  Editor(fb::PlanT &plan, unsigned seed) : plan(plan), random(seed) {}

  /// One edit, described for messages.
  std::string edit();

private:
  size_t below(size_t number) { return random() % number; }
  template <typename T>
  T &pick(std::vector<T> &list) {
    return list[below(list.size())];
  }
  /// A number that is likely to be near a limit.
  int64_t number() {
    static const int64_t numbers[] = {
        0, 1, 2, 3, 4, 5, 7, 63, 64, 65535, 65536, int64_t(1) << 31, -1};
    return numbers[below(std::size(numbers))];
  }

  std::string editCommand();
  std::string editTables();

  fb::PlanT &plan;
  std::mt19937 random;
};

} // namespace

std::string Editor::editCommand() {
  fb::ProgramT &program = *pick(plan.programs);
  auto &commands = program.commands;
  size_t at = below(commands.size());
  fb::CommandT &command = *commands[at];
  auto say = [&](const std::string &what) {
    return what + " of command " + std::to_string(at) + " of " + program.name +
           "." + std::to_string(program.rank);
  };
  // Waits go on naming the same commands, now and then.
  auto renumber = [&](auto map) {
    for (auto &other : commands)
      if (fb::CollectiveWaitT *wait = other->operation.AsCollectiveWait())
        wait->start = map(wait->start);
  };
  switch (below(6)) {
  case 0: {
    size_t to = below(commands.size());
    renumber([&](uint32_t start) {
      return start == at ? to : start == to ? at : start;
    });
    std::swap(commands[at], commands[to]);
    return say("swap with " + std::to_string(to));
  }
  case 1: {
    // To a place nearby: many of these are sound.
    size_t to = std::min(at + 1 + below(3), commands.size() - 1);
    renumber([&](uint32_t start) {
      return start == at ? to : start > at && start <= to ? start - 1 : start;
    });
    std::rotate(commands.begin() + at, commands.begin() + at + 1,
                commands.begin() + to + 1);
    return say("move to " + std::to_string(to));
  }
  case 2:
    renumber([&](uint32_t start) { return start > at ? start - 1 : start; });
    commands.erase(commands.begin() + at);
    return say("removal");
  case 3:
    command.task = number();
    return say("task " + std::to_string(command.task));
  default:
    break;
  }
  if (auto *send = command.operation.AsSend()) {
    switch (below(3)) {
    case 0:
      send->peer = number();
      return say("peer " + std::to_string(send->peer));
    case 1:
      send->message = number();
      return say("message " + std::to_string(send->message));
    default:
      send->buffers = {uint32_t(below(program.buffers.size() + 1))};
      return say("buffer " + std::to_string(send->buffers[0]));
    }
  }
  if (auto *receive = command.operation.AsReceive()) {
    switch (below(3)) {
    case 0:
      receive->peer = number();
      return say("peer " + std::to_string(receive->peer));
    case 1:
      receive->message = number();
      return say("message " + std::to_string(receive->message));
    default:
      receive->buffers = {uint32_t(below(program.buffers.size() + 1))};
      return say("buffer " + std::to_string(receive->buffers[0]));
    }
  }
  if (auto *wait = command.operation.AsCollectiveWait()) {
    wait->start = below(commands.size() + 1);
    return say("start " + std::to_string(wait->start));
  }
  if (auto *start = command.operation.AsCollectiveStart()) {
    if (below(2)) {
      start->items[0]->in = below(program.buffers.size() + 1);
      return say("operand " + std::to_string(start->items[0]->in));
    }
    // The same on all ranks: then it may be sound.
    static const std::vector<uint16_t> axes[] = {
        {}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
    const std::vector<uint16_t> old = start->axes, to = axes[below(8)];
    for (auto &other : plan.programs)
      for (auto &each : other->commands)
        if (auto *joint = each->operation.AsCollectiveStart();
            joint && joint->axes == old)
          joint->axes = to;
    return say("axes");
  }
  if (auto *launch = command.operation.AsLaunch()) {
    // Kernels trust the sizes of their operands.
    uint32_t &buffer = pick(launch->buffers);
    uint32_t other = below(program.buffers.size());
    if (program.buffers[other]->bytes == program.buffers[buffer]->bytes)
      buffer = other;
    return say("operand " + std::to_string(other));
  }
  return "nothing";
}

std::string Editor::editTables() {
  fb::PipelineT &pipeline = *plan.pipeline;
  fb::ProgramT &program = *pick(plan.programs);
  switch (below(14)) {
  case 0:
    pipeline.axis = number();
    return "axis";
  case 1:
    pipeline.microbatches = number();
    return "microbatches";
  case 2:
    if (!pipeline.stages.empty())
      pick(pipeline.stages) = number();
    return "rank of a stage";
  case 3:
    pipeline.stages.resize(below(6));
    return "number of stages";
  case 4:
    pick(pipeline.ranks)->arena_bytes = number();
    return "arena of a rank";
  case 5:
    pipeline.ranks.resize(below(3) + 1);
    for (auto &rank : pipeline.ranks)
      if (!rank)
        rank = std::make_unique<fb::PipelineRankT>();
    return "number of ranks";
  case 6:
    plan.arena_bytes = number();
    return "arena";
  case 7: {
    auto &places = pick(plan.tensors)->places;
    if (!places.empty())
      pick(places)->rank = number();
    return "rank of a tensor";
  }
  case 8: {
    auto &places = pick(plan.tensors)->places;
    if (!places.empty())
      pick(places)->offset = 64 * number();
    return "place of a tensor";
  }
  case 9:
    program.rank = number();
    return "rank of a program";
  case 10:
    program.name = below(2) ? "evaluate" : "other";
    return "name of a program";
  case 11:
    pick(program.tasks)->stage = number();
    return "stage of a task";
  case 12:
    pick(program.tasks)->microbatch = number();
    return "microbatch of a task";
  default: {
    static const double seconds[] = {0,
                                     1e-300,
                                     1e8,
                                     1e300,
                                     -1,
                                     NAN,
                                     std::numeric_limits<double>::infinity()};
    fb::TaskT &task = *pick(program.tasks);
    if (below(2))
      task.seconds = seconds[below(std::size(seconds))];
    else
      task.kind = static_cast<fb::TaskKind>(below(5));
    return "time or kind of a task";
  }
  }
}

std::string Editor::edit() { return below(3) ? editCommand() : editTables(); }

namespace {

/// The losses of two steps and an evaluation, and then all tensors, as bytes.
std::string run(Context &context, const std::shared_ptr<const Plan> &plan,
                bool share) {
  ExecutorOptions options;
  options.shareReplicas = share;
  options.poisonPadding = true;
  auto executor = Executor::create(context, plan, options);
  if (!executor.ok())
    return std::string(executor.status().message());
  std::string bytes;
  auto add = [&](const void *data, size_t size) {
    bytes.append(static_cast<const char *>(data), size);
  };
  EXPECT_TRUE((*executor)->initializeParameters().ok());
  NamedArrays inputs;
  std::vector<HostArray> arrays;
  arrays.reserve(plan->tensors().size());
  for (const TensorInfo &tensor : plan->tensors())
    if (tensor.role == Role::Input) {
      HostArray &array = arrays.emplace_back(tensor.dtype, tensor.shape);
      for (size_t i = 0; i < array.data.size() / 4; ++i)
        array.values<float>()[i] = float(i % 7);
      inputs.insert({tensor.name, array.view()});
    }
  for (const char *program : {"train_step", "train_step", "evaluate"}) {
    auto result = (*executor)->run(program, inputs);
    if (!result.ok())
      bytes += std::string(result.status().message());
    else
      add(&result->loss, sizeof(result->loss));
  }
  for (const TensorInfo &tensor : plan->tensors())
    if (auto array = (*executor)->getTensor(tensor.name); array.ok())
      add(array->data.data(), array->data.size());
  return bytes;
}

TEST(PipelineFuzzTest, EditedPlansAreRefusedOrRun) {
  auto one = Context::create({1}), three = Context::create({3});
  ASSERT_TRUE(one.ok() && three.ok());
  int refused = 0, ran = 0;
  constexpr int trials = 1500;
  for (unsigned trial = 0; trial < trials; ++trial) {
    std::string edits;
    auto plan = Plan::parse(
        test::makePipelinePlan(2 + trial % 2, 2, [&](fb::PlanT &plan) {
          Editor editor(plan, trial);
          for (unsigned i = 0; i <= trial % 3; ++i)
            edits += editor.edit() + "; ";
        }));
    if (!plan.ok()) {
      EXPECT_FALSE(plan.status().message().empty());
      ++refused;
      continue;
    }
    std::string expected = run(**one, *plan, /*share=*/false);
    EXPECT_TRUE(run(**one, *plan, /*share=*/true) == expected)
        << "shared: trial " << trial << ": " << edits;
    EXPECT_TRUE(run(**three, *plan, /*share=*/true) == expected)
        << "threads: trial " << trial << ": " << edits;
    ++ran;
  }
  EXPECT_GT(refused, trials / 4);
  EXPECT_GT(ran, trials / 20);
}

} // namespace
