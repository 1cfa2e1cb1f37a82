//===- PipelinePlan.cpp - A plan with a pipeline, made by hand ------------===//

#include "TestPlan.h"

#include "shardc-rt/PlanFormat.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace shardc::rt;

namespace {

using FileTaskKind = fb::TaskKind;

struct TaskAt {
  FileTaskKind kind;
  int microbatch;
  bool operator<(const TaskAt &other) const {
    return std::tie(kind, microbatch) < std::tie(other.kind, other.microbatch);
  }
};

/// The order of 1F1B on each rank, or F alone, and when tasks end if F takes 1
/// and B takes 2.
class Schedule {
public:
  Schedule(int ranks, int microbatches, bool isStep);

  std::vector<std::vector<TaskAt>> tasks; ///< By rank.
  /// By rank the messages that its tasks send, numbered by time.
  std::vector<std::map<TaskAt, uint32_t>> sends;

private:
  bool run(int rank, TaskAt task);

  std::vector<std::map<TaskAt, int>> ends;
  std::vector<int> clocks;
};

/// The program of one rank.
class RankProgram {
public:
  RankProgram(fb::PlanT &plan, const Schedule &schedule, int rank,
              uint64_t &arena, bool isStep);

  std::unique_ptr<fb::ProgramT> make();

private:
  uint32_t buffer(uint64_t offset, std::vector<int64_t> shape);
  uint32_t own(std::vector<int64_t> shape);
  uint32_t tensor(const std::string &name, std::vector<int64_t> shape,
                  uint64_t skip = 0);
  template <typename T>
  uint32_t add(T operation, int task = -1);
  void launch(uint32_t kernel, std::vector<uint32_t> buffers, uint32_t writes,
              int64_t extent, int task);
  void wait(uint32_t start) {
    fb::CollectiveWaitT wait;
    wait.start = start;
    add(wait);
  }
  uint32_t reduce(uint32_t in, std::vector<uint16_t> axes);
  uint32_t startUntil(uint32_t message, int task);
  void addTask(int number, TaskAt task);

  struct Transfer {
    bool isSend;
    uint16_t peer;
    uint32_t buffer;
  };

  fb::PlanT &plan;
  const Schedule &schedule;
  int rank, last;
  uint64_t &arena;
  bool isStep;
  std::unique_ptr<fb::ProgramT> program = std::make_unique<fb::ProgramT>();
  uint32_t w, dw = 0, loss = 0, ones = 0;
  /// By microbatch: a stage's operand and result, and their gradients.
  std::vector<uint32_t> in, out, gradient, inGradient;
  /// By message, those that have not started.
  std::map<uint32_t, Transfer> transfers;
  /// By message, the command that starts it.
  std::map<uint32_t, uint32_t> started;
};

} // namespace

Schedule::Schedule(int ranks, int microbatches, bool isStep)
    : tasks(ranks), sends(ranks), ends(ranks), clocks(ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    int ahead = isStep ? std::min(ranks - rank, microbatches) : microbatches;
    for (int i = 0; i < microbatches + ahead; ++i) {
      if (i < microbatches)
        tasks[rank].push_back({FileTaskKind::Forward, i});
      if (i >= ahead - 1 && i - ahead + 1 < microbatches && isStep)
        tasks[rank].push_back({FileTaskKind::Backward, i - ahead + 1});
    }
  }
  std::vector<size_t> next(ranks);
  for (bool changed = true; changed;) {
    changed = false;
    for (int rank = 0; rank < ranks; ++rank)
      while (next[rank] < tasks[rank].size() &&
             run(rank, tasks[rank][next[rank]]))
        ++next[rank], changed = true;
  }
  std::vector<std::tuple<int, int, TaskAt>> sent;
  for (int rank = 0; rank < ranks; ++rank)
    for (auto [task, end] : ends[rank])
      if (rank != (task.kind == FileTaskKind::Forward ? ranks - 1 : 0))
        sent.push_back({end, rank, task});
  std::sort(sent.begin(), sent.end());
  for (auto [end, rank, task] : sent) {
    uint32_t message = 0;
    for (const auto &ofRank : sends)
      message += ofRank.size();
    sends[rank][task] = message;
  }
}

bool Schedule::run(int rank, TaskAt task) {
  bool isForward = task.kind == FileTaskKind::Forward;
  int start = clocks[rank];
  int from = isForward ? rank - 1 : rank + 1;
  if (from >= 0 && from < static_cast<int>(ends.size())) {
    auto found = ends[from].find(task);
    if (found == ends[from].end())
      return false;
    start = std::max(start, found->second);
  }
  clocks[rank] = ends[rank][task] = start + (isForward ? 1 : 2);
  return true;
}

RankProgram::RankProgram(fb::PlanT &plan, const Schedule &schedule, int rank,
                         uint64_t &arena, bool isStep)
    : plan(plan), schedule(schedule), rank(rank),
      last(schedule.tasks.size() - 1), arena(arena), isStep(isStep) {}

uint32_t RankProgram::buffer(uint64_t offset, std::vector<int64_t> shape) {
  auto result = std::make_unique<fb::BufferT>();
  result->offset = offset;
  result->bytes = 4;
  for (int64_t size : shape)
    result->bytes *= size;
  result->shape = std::move(shape);
  program->buffers.push_back(std::move(result));
  return program->buffers.size() - 1;
}

uint32_t RankProgram::own(std::vector<int64_t> shape) {
  uint32_t result = buffer(arena, std::move(shape));
  arena += 64;
  return result;
}

uint32_t RankProgram::tensor(const std::string &name,
                             std::vector<int64_t> shape, uint64_t skip) {
  for (auto &tensor : plan.tensors)
    for (auto &place : tensor->places)
      if (tensor->name == name && place->rank == rank)
        return buffer(place->offset + skip, std::move(shape));
  return 0;
}

template <typename T>
uint32_t RankProgram::add(T operation, int task) {
  auto command = std::make_unique<fb::CommandT>();
  command->operation.Set(std::move(operation));
  command->task = task;
  program->commands.push_back(std::move(command));
  return program->commands.size() - 1;
}

void RankProgram::launch(uint32_t kernel, std::vector<uint32_t> buffers,
                         uint32_t writes, int64_t extent, int task) {
  fb::LaunchT launch;
  launch.kernel = kernel;
  launch.extent = extent;
  launch.writes = writes;
  auto part = std::make_unique<fb::LaunchPartT>();
  part->extent = extent;
  for (size_t i = 0; i < buffers.size(); ++i)
    part->buffers.push_back(i);
  part->coordinate_axes = {0};
  launch.parts.push_back(std::move(part));
  launch.buffers = std::move(buffers);
  add(std::move(launch), task);
}

uint32_t RankProgram::reduce(uint32_t in, std::vector<uint16_t> axes) {
  fb::CollectiveStartT start;
  start.axes = std::move(axes);
  auto item = std::make_unique<fb::CollectiveItemT>();
  item->in = in;
  item->out = own({});
  uint32_t out = item->out;
  start.items.push_back(std::move(item));
  wait(add(std::move(start)));
  return out;
}

/// Starts the messages up to `message`, which all ranks start in one order, and
/// returns the command that starts it.
uint32_t RankProgram::startUntil(uint32_t message, int task) {
  while (!transfers.empty() && transfers.begin()->first <= message) {
    auto [number, transfer] = *transfers.begin();
    transfers.erase(transfers.begin());
    auto fill = [&, number = number, transfer = transfer](auto command) {
      command.buffers = {transfer.buffer};
      command.peer = transfer.peer;
      command.message = number;
      started[number] = add(std::move(command), task);
    };
    if (transfer.isSend)
      fill(fb::SendT());
    else
      fill(fb::ReceiveT());
  }
  return started[message];
}

void RankProgram::addTask(int number, TaskAt task) {
  int m = task.microbatch;
  bool isForward = task.kind == FileTaskKind::Forward;
  int from = isForward ? rank - 1 : rank + 1;
  if (from >= 0 && from <= last)
    wait(startUntil(schedule.sends[from].at(task), number));
  if (isForward) {
    launch(0, {in[m], w, out[m]}, 1, 2, number);
    if (rank == last)
      launch(1, {out[m], loss, loss, gradient[m]}, 2, 1, number);
  } else {
    launch(2, {gradient[m], in[m], w, dw, inGradient[m], dw}, 2, 1, number);
  }
  auto sent = schedule.sends[rank].find(task);
  if (sent != schedule.sends[rank].end())
    startUntil(sent->second, number);
}

std::unique_ptr<fb::ProgramT> RankProgram::make() {
  program->name = isStep ? "train_step" : "evaluate";
  program->rank = rank;
  w = tensor("w" + std::to_string(rank), {});
  for (const TaskAt &task : schedule.tasks[rank]) {
    auto entry = std::make_unique<fb::TaskT>();
    entry->kind = task.kind;
    entry->stage = rank;
    entry->microbatch = task.microbatch;
    entry->seconds = task.kind == FileTaskKind::Forward ? 1 : 2;
    program->tasks.push_back(std::move(entry));
  }
  for (uint32_t m = 0; m < plan.pipeline->microbatches; ++m) {
    in.push_back(rank == 0 ? tensor("x", {2}, m * 64) : own({2}));
    out.push_back(own({2}));
    gradient.push_back(own({2}));
    inGradient.push_back(own({2}));
  }
  for (int other = 0; other <= last; ++other)
    for (auto [task, message] : schedule.sends[other]) {
      bool isForward = task.kind == FileTaskKind::Forward;
      int to = isForward ? other + 1 : other - 1, m = task.microbatch;
      if (other == rank)
        transfers[message] = {true, uint16_t(to),
                              isForward ? out[m] : inGradient[m]};
      if (to == rank)
        transfers[message] = {false, uint16_t(other),
                              isForward ? in[m] : gradient[m]};
    }
  auto clear = [&](uint32_t buffer) {
    fb::ClearT clear;
    clear.buffer = buffer;
    add(clear);
  };
  if (isStep)
    clear(dw = own({}));
  if (rank == last)
    clear(loss = own({}));
  for (size_t i = 0; i < schedule.tasks[rank].size(); ++i)
    addTask(i, schedule.tasks[rank][i]);
  for (auto [task, message] : schedule.sends[rank])
    wait(started[message]);
  if (isStep) {
    uint32_t sum = reduce(dw, {1}), all = reduce(dw, {0, 1});
    uint32_t t = tensor("t", {});
    launch(3, {sum, all, w, t, w, t}, 2, 1, -1);
  }
  if (rank == last) {
    auto result = std::make_unique<fb::ResultT>();
    result->name = "loss";
    result->buffer = reduce(loss, {1});
    result->sharding = std::make_unique<fb::ShardingT>();
    program->results.push_back(std::move(result));
  }
  return std::move(program);
}

static void addTensor(fb::PlanT &plan, const std::string &name, fb::Role role,
                      std::vector<int> ranks, std::vector<uint64_t> &arenas) {
  auto tensor = std::make_unique<fb::TensorT>();
  tensor->name = name;
  tensor->role = role;
  tensor->sharding = std::make_unique<fb::ShardingT>();
  tensor->bytes = 4;
  tensor->init = std::make_unique<fb::InitializerT>();
  if (role == fb::Role::Input) {
    // Two rows for each microbatch and device, at multiples of 64 bytes.
    int64_t rows = 16 * plan.pipeline->microbatches;
    tensor->shape = {2 * rows};
    tensor->bytes = 4 * rows;
    auto dim = std::make_unique<fb::DimShardingT>();
    dim->axes = {1};
    tensor->sharding->dims.push_back(std::move(dim));
  }
  if (role == fb::Role::Parameter) {
    tensor->init->kind = fb::InitKind::Uniform;
    tensor->init->b = 1;
  }
  for (int rank : ranks) {
    auto place = std::make_unique<fb::TensorPlaceT>();
    place->rank = rank;
    place->offset = arenas[rank];
    arenas[rank] += (tensor->bytes + 63) / 64 * 64;
    tensor->places.push_back(std::move(place));
  }
  plan.tensors.push_back(std::move(tensor));
}

void test::addPipeline(fb::PlanT &plan, int ranks, int microbatches) {
  plan.version = pipelinePlanVersion;
  plan.mesh->axes.clear();
  for (auto [name, size] :
       {std::make_pair("stage", ranks), std::make_pair("data", 2),
        std::make_pair("copy", 2)}) {
    auto axis = std::make_unique<fb::AxisT>();
    axis->name = name;
    axis->size = size;
    plan.mesh->axes.push_back(std::move(axis));
  }
  plan.kernels = {"test_stage_forward", "test_stage_loss",
                  "test_stage_backward", "test_stage_update"};
  plan.tensors.clear();
  plan.programs.clear();
  plan.pipeline = std::make_unique<fb::PipelineT>();
  plan.pipeline->schedule = "1f1b";
  plan.pipeline->microbatches = microbatches;
  plan.batch_size = 32 * microbatches;
  std::vector<uint64_t> arenas;
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) {
    arenas.push_back(64 * rank);
    all.push_back(rank);
    plan.pipeline->stages.push_back(rank);
  }
  addTensor(plan, "x", fb::Role::Input, {0}, arenas);
  for (int rank = 0; rank < ranks; ++rank)
    addTensor(plan, "w" + std::to_string(rank), fb::Role::Parameter, {rank},
              arenas);
  addTensor(plan, "t", fb::Role::State, all, arenas);
  for (bool isStep : {true, false}) {
    Schedule schedule(ranks, microbatches, isStep);
    for (int rank = 0; rank < ranks; ++rank)
      plan.programs.push_back(
          RankProgram(plan, schedule, rank, arenas[rank], isStep).make());
  }
  plan.arena_bytes = 0;
  for (uint64_t arena : arenas) {
    auto rank = std::make_unique<fb::PipelineRankT>();
    rank->arena_bytes = arena;
    plan.pipeline->ranks.push_back(std::move(rank));
    plan.arena_bytes = std::max(plan.arena_bytes, arena);
  }
}

namespace {

/// The commands of a rank on the streams of a GPU.
class GpuCommands {
public:
  explicit GpuCommands(fb::ProgramT &program) : program(program) {}

  void make();

private:
  uint32_t add(std::unique_ptr<fb::CommandT> command, fb::Stream stream,
               std::vector<uint32_t> after);
  template <typename T>
  uint32_t addCopy(T operation, std::vector<uint32_t> after) {
    auto command = std::make_unique<fb::CommandT>();
    command->operation.Set(std::move(operation));
    return add(std::move(command), fb::Stream::Copies, std::move(after));
  }

  fb::ProgramT &program;
  std::vector<std::unique_ptr<fb::CommandT>> commands;
  /// The last one on the stream of kernels, if any, and of communication that
  /// has been waited for since those that the next one comes after.
  std::vector<uint32_t> lastKernel, ended;
};

} // namespace

uint32_t GpuCommands::add(std::unique_ptr<fb::CommandT> command,
                          fb::Stream stream, std::vector<uint32_t> after) {
  command->stream = stream;
  std::sort(after.begin(), after.end());
  command->after = std::move(after);
  commands.push_back(std::move(command));
  return commands.size() - 1;
}

void GpuCommands::make() {
  std::vector<std::unique_ptr<fb::CommandT>> old = std::move(program.commands);
  // By old number of a start its new one.
  std::map<uint32_t, uint32_t> starts;
  // The upload of x, which is tensor 0, where the rank has it.
  if (program.rank == 0) {
    fb::UploadT upload;
    upload.tensor = 0;
    ended.push_back(addCopy(upload, {}));
  }
  for (uint32_t i = 0; i < old.size(); ++i) {
    fb::OperationUnion &operation = old[i]->operation;
    if (auto *wait = operation.AsCollectiveWait()) {
      ended.push_back(starts.at(wait->start));
    } else if (operation.AsSend() || operation.AsReceive() ||
               operation.AsCollectiveStart()) {
      starts[i] = add(std::move(old[i]), fb::Stream::Communication, lastKernel);
    } else {
      if (fb::LaunchT *launch = operation.AsLaunch())
        launch->threads = 32;
      lastKernel = {add(std::move(old[i]), fb::Stream::Compute, ended)};
      ended.clear();
    }
  }
  // The last start makes the result.
  if (!program.results.empty())
    addCopy(fb::DownloadT(), {starts.rbegin()->second});
  program.commands = std::move(commands);
}

void test::onGpus(fb::PlanT &plan) {
  plan.gpu_target = "sm_90";
  for (auto &program : plan.programs)
    GpuCommands(*program).make();
  std::string ptx = ".version 7.8\n";
  for (auto [kernel, buffers] :
       {std::make_pair("forward", 3), std::make_pair("loss", 4),
        std::make_pair("backward", 6), std::make_pair("update", 6)}) {
    ptx += std::string(".entry test_stage_") + kernel + "( .param .u64 context";
    for (int i = 0; i < buffers; ++i)
      ptx += ", .param .u64 p" + std::to_string(i);
    ptx += " ) { ret; }\n";
  }
  plan.code.assign(ptx.begin(), ptx.end());
}

std::string
test::makePipelinePlan(int ranks, int microbatches,
                       const std::function<void(fb::PlanT &)> &edit) {
  return makePlan(1, [&](fb::PlanT &plan) {
    addPipeline(plan, ranks, microbatches);
    if (edit)
      edit(plan);
  });
}
