//===- BenchmarkPlan.cpp - Plans of one kind of command -------------------===//

#include "BenchmarkPlan.h"

#include "../test/TestPlan.h"

#include "absl/strings/str_cat.h"

#include <fstream>
#include <sstream>

using namespace shardc::rt;
using namespace shardc::rt::bench;

static std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

static PlanOrError finish(fb::PlanT &plan) {
  plan.fingerprint = 1; // present, and made right below
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fb::Plan::Pack(builder, &plan), fb::PlanIdentifier());
  return Plan::parse(test::withFingerprint(
      std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()),
                  builder.GetSize())));
}

/// A plan without tensors whose one program has two buffers of `elements` f32
/// and no commands.
static fb::PlanT makeEmptyPlan(int devices, int64_t elements) {
  fb::PlanT plan;
  plan.version = planVersion;
  plan.model = "benchmark";
  plan.batch_size = 1;
  std::string code = readFile(EMPTY_KERNEL);
  plan.code.assign(code.begin(), code.end());
  plan.kernels = {"benchmark_empty"};
  plan.mesh = std::make_unique<fb::MeshT>();
  auto axis = std::make_unique<fb::AxisT>();
  axis->name = "d";
  axis->size = devices;
  plan.mesh->axes.push_back(std::move(axis));
  auto program = std::make_unique<fb::ProgramT>();
  program->name = "train_step";
  for (int i = 0; i < 2; ++i) {
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->shape = {elements};
    buffer->bytes = 4 * elements;
    buffer->offset = plan.arena_bytes;
    plan.arena_bytes += (buffer->bytes + 63) / 64 * 64;
    program->buffers.push_back(std::move(buffer));
  }
  plan.programs.push_back(std::move(program));
  return plan;
}

template <typename T>
static void addCommand(fb::PlanT &plan, T operation) {
  auto command = std::make_unique<fb::CommandT>();
  command->operation.Set(std::move(operation));
  plan.programs[0]->commands.push_back(std::move(command));
}

/// A launch of the kernel that does nothing, which says that it reads one of
/// the two buffers and writes the other.
static void addLaunch(fb::PlanT &plan, uint32_t written, int64_t extent) {
  fb::LaunchT launch;
  launch.buffers = {1 - written, written};
  launch.extent = extent;
  launch.writes = 1;
  addCommand(plan, std::move(launch));
}

PlanOrError shardc::rt::bench::makeLaunchPlan(int devices, int64_t count,
                                              int64_t extent) {
  fb::PlanT plan = makeEmptyPlan(devices, /*elements=*/16);
  for (int64_t i = 0; i < count; ++i)
    addLaunch(plan, /*written=*/(i + 1) % 2, extent);
  return finish(plan);
}

PlanOrError shardc::rt::bench::makeAllReducePlan(int devices, int64_t count,
                                                 int64_t elements) {
  fb::PlanT plan = makeEmptyPlan(devices, elements);
  // The result of a kernel may differ from device to device.
  addLaunch(plan, /*written=*/0, /*extent=*/1);
  for (int64_t i = 0; i < count; ++i) {
    fb::CollectiveStartT start;
    start.kind = fb::CollectiveKind::AllReduce;
    start.axes = {0};
    auto item = std::make_unique<fb::CollectiveItemT>();
    item->in = 0;
    item->out = 1;
    start.items.push_back(std::move(item));
    fb::CollectiveWaitT wait;
    wait.start = plan.programs[0]->commands.size();
    addCommand(plan, std::move(start));
    addCommand(plan, wait);
  }
  return finish(plan);
}

PlanOrError shardc::rt::bench::makeUpdatePlan(const std::string &path) {
  PlanOrError whole = Plan::loadFile(path);
  if (!whole.ok())
    return whole;
  if ((*whole)->numDevices() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a plan for one device"));
  std::unique_ptr<fb::PlanT> plan(fb::GetPlan(readFile(path).data())->UnPack());
  std::vector<std::unique_ptr<fb::ProgramT>> programs;
  for (std::unique_ptr<fb::ProgramT> &program : plan->programs) {
    if (program->name != "train_step")
      continue;
    std::vector<std::unique_ptr<fb::CommandT>> commands;
    for (std::unique_ptr<fb::CommandT> &command : program->commands)
      if (command->part == fb::Part::Update &&
          command->operation.type == fb::Operation::Launch)
        commands.push_back(std::move(command));
    program->commands = std::move(commands);
    program->results.clear();
    program->collectives.clear();
    programs.push_back(std::move(program));
  }
  if (programs.empty() || programs[0]->commands.empty())
    return absl::NotFoundError(
        absl::StrCat(path, ": no commands update parameters alone"));
  plan->programs = std::move(programs);
  // The step's inputs are not used, and only copies are written.
  for (std::unique_ptr<fb::TensorT> &tensor : plan->tensors)
    if (tensor->role == fb::Role::Input || tensor->role == fb::Role::Label ||
        tensor->role == fb::Role::Copy) {
      tensor->role = fb::Role::State;
      tensor->init = std::make_unique<fb::InitializerT>();
    }
  return finish(*plan);
}
