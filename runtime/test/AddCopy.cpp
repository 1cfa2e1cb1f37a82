//===- AddCopy.cpp - A small plan with a copy of a parameter --------------===//

#include "TestPlan.h"

#include "plan/PlanSpec.h"

using namespace shardc::rt;

static std::unique_ptr<fb::TensorT> makeCopy(const fb::TensorT &parameter,
                                             uint64_t offset) {
  auto copy = std::make_unique<fb::TensorT>();
  copy->name = parameter.name + ".bf16";
  copy->role = fb::Role::Copy;
  copy->dtype = fb::DType::BF16;
  copy->shape = parameter.shape;
  copy->sharding = std::make_unique<fb::ShardingT>(*parameter.sharding);
  copy->parameter = parameter.name;
  copy->offset = offset;
  copy->bytes = parameter.bytes / 2;
  return copy;
}

static uint32_t addBuffer(fb::ProgramT &program, const fb::TensorT &tensor) {
  auto buffer = std::make_unique<fb::BufferT>();
  buffer->offset = tensor.offset;
  buffer->bytes = tensor.bytes;
  buffer->dtype = tensor.dtype;
  buffer->shape = tensor.shape;
  program.buffers.push_back(std::move(buffer));
  return uint32_t(program.buffers.size() - 1);
}

/// Adds a program that launches `kernel` alone, on `threads` threads, to write
/// the second of two buffers.
static fb::ProgramT &addProgram(fb::PlanT &plan, absl::string_view name,
                                const char *kernel, uint32_t threads) {
  auto program = std::make_unique<fb::ProgramT>();
  program->name = std::string(name);
  fb::LaunchT launch;
  launch.kernel = plan.kernels.size();
  launch.buffers = {0, 1};
  launch.extent = 4;
  launch.grain = threads > 0 ? 1 : 4;
  launch.writes = 1;
  launch.threads = threads;
  auto command = std::make_unique<fb::CommandT>();
  command->operation.Set(std::move(launch));
  program->commands.push_back(std::move(command));
  plan.kernels.push_back(kernel);
  plan.programs.push_back(std::move(program));
  return *plan.programs.back();
}

void test::addCopy(fb::PlanT &plan) {
  const fb::TensorT &w = *plan.tensors[0];
  std::unique_ptr<fb::TensorT> copy = makeCopy(w, plan.arena_bytes);
  plan.arena_bytes += 64;
  fb::ProgramT &step = *plan.programs[0];
  uint32_t threads = 0;
  for (std::unique_ptr<fb::CommandT> &command : step.commands) {
    fb::LaunchT *launch = command->operation.AsLaunch();
    if (!launch || launch->kernel != 1)
      continue;
    launch->kernel = plan.kernels.size();
    launch->buffers.insert(launch->buffers.begin() + 2, addBuffer(step, *copy));
    ++launch->writes;
    threads = launch->threads;
  }
  plan.kernels.push_back("test_update_copy");

  fb::ProgramT &evaluate = addProgram(plan, "evaluate", "test_first", threads);
  addBuffer(evaluate, *copy);
  auto loss = std::make_unique<fb::ResultT>(*step.results[0]);
  evaluate.buffers.push_back(
      std::make_unique<fb::BufferT>(*step.buffers[loss->buffer]));
  loss->buffer = 1;
  evaluate.results.push_back(std::move(loss));
  if (threads > 0) {
    auto command = std::make_unique<fb::CommandT>();
    command->operation.Set(fb::DownloadT());
    command->stream = fb::Stream::Copies;
    command->after = {0};
    evaluate.commands.push_back(std::move(command));
  }

  fb::ProgramT &rounding =
      addProgram(plan, roundingProgram, "test_round", threads);
  addBuffer(rounding, w);
  addBuffer(rounding, *copy);
  plan.tensors.push_back(std::move(copy));
}
