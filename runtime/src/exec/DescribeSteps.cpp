//===- DescribeSteps.cpp - The steps of a program, for traces -------------===//

#include "exec/DescribeSteps.h"

#include "exec/CommunicationNames.h"
#include "plan/Accesses.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

using namespace shardc::rt;

static std::string shapeOf(const BufferSpec &buffer) {
  return absl::StrCat(toString(buffer.dtype), "[",
                      absl::StrJoin(buffer.shape, ","), "]");
}

/// "f32[32,64], f32[64,128] -> f32[32,128]".
static std::string shapesOf(const ProgramSpec &program,
                            const Command &command) {
  std::vector<std::string> read, written;
  for (const Operand &operand : operandsOf(program, command))
    (operand.isWrite ? written : read)
        .push_back(shapeOf(program.buffers[operand.buffer]));
  std::string shapes = absl::StrJoin(read, ", ");
  if (!written.empty())
    absl::StrAppend(&shapes, shapes.empty() ? "" : " ", "-> ",
                    absl::StrJoin(written, ", "));
  return shapes;
}

static std::string nameOf(const PlanSpec &rank, const ProgramSpec &program,
                          const Command &command) {
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation))
    return rank.kernels[launch->kernel];
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation))
    return absl::StrCat("gemm ",
                        gemm->batch > 1 ? absl::StrCat(gemm->batch, "x") : "",
                        gemm->m, "x", gemm->n, "x", gemm->k);
  if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation))
    return nameOf(*start, rank.mesh);
  if (auto *send = std::get_if<SendCommand>(&command.operation))
    return absl::StrCat("send to stage rank ", send->peer);
  if (auto *upload = std::get_if<UploadCommand>(&command.operation))
    return absl::StrCat("upload ", rank.tensors[upload->tensor].name);
  if (auto *download = std::get_if<DownloadCommand>(&command.operation))
    return absl::StrCat("download ", program.results[download->result].name);
  return std::string(nameOf(command));
}

TracedStep shardc::rt::describeCommand(const PlanSpec &rank,
                                       const ProgramSpec &program,
                                       const Command &command) {
  TracedStep step;
  step.kind = isCommunication(command) ? TracedStep::Kind::Communication
                                       : TracedStep::Kind::Compute;
  step.name = ::nameOf(rank, program, command);
  step.part = std::string(toString(command.part));
  step.source = command.source;
  step.shapes = shapesOf(program, command);
  if (command.task >= 0) {
    const TaskSpec &task = program.tasks[command.task];
    step.task = absl::StrCat(toString(task.kind), task.microbatch, " of stage ",
                             task.stage);
  }
  return step;
}

static std::string nameOf(const Step &step, const std::string &command,
                          const Command &of) {
  switch (step.kind) {
  case Step::Kind::Pack:
    return absl::StrCat("pack for ", command);
  case Step::Kind::ColumnSums:
    return absl::StrCat("column sums of ", command);
  case Step::Kind::StartMessages:
    return absl::StrCat("start ", nameOf(of));
  case Step::Kind::FinishMessages:
    return absl::StrCat("wait for ", nameOf(of));
  case Step::Kind::Loop:
    return absl::StrCat("loop of ", step.runs, " runs");
  default:
    return command;
  }
}

/// By call, or by those that are taken together, or once for all, the devices
/// of the mesh that hold its copy of the results; of a collective all devices
/// here.
static std::vector<std::vector<int64_t>>
devicesOf(const Step &step, const PlanSpec &plan, const DeviceSet &devices,
          size_t number, const Command &command) {
  const ProgramSpec &program = devices.plan.programs[number];
  DeviceRange local = devices.layout.devices();
  std::vector<std::vector<int64_t>> found;
  if (step.kind == Step::Kind::Loop)
    return found;
  uint32_t result = 0;
  for (const Operand &operand : operandsOf(program, command))
    if (operand.isWrite)
      result = operand.buffer;
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation))
    result = gemm->c;
  const size_t perCall = step.resultsPerCall();
  const bool isByCall = step.calls.size() * perCall == step.devices.size() &&
                        step.calls.size() > 1;
  found.resize(isByCall ? step.calls.size() / step.together : 1);
  for (int64_t device = local.first; device < local.last; ++device) {
    size_t copy = 0;
    auto placeOn = [&](int64_t other) {
      return devices.layout.offsetOf(number, result, other);
    };
    while (isByCall && copy < step.devices.size() &&
           placeOn(step.devices[copy]) != placeOn(device))
      ++copy;
    const size_t call = copy / perCall;
    if (call < found.size() * step.together)
      found[call / step.together].push_back(plan.deviceOf(step.rank, device));
  }
  return found;
}

TracedProgram shardc::rt::describeSteps(const PlanSpec &plan,
                                        absl::Span<const DeviceSet> ranks,
                                        size_t program,
                                        const PreparedSteps &prepared) {
  TracedProgram traced;
  traced.name = ranks[0].plan.programs[program].name;
  for (uint64_t bytes : prepared.sharedBytes)
    traced.sharedWireBytes += bytes;
  std::vector<std::vector<uint64_t>> use;
  for (const DeviceSet &rank : ranks)
    use.push_back(arenaUse(rank.plan, rank.plan.programs[program]));
  size_t loopEnd = 0;
  int64_t runs = 1;
  for (size_t i = 0; i < prepared.steps.size(); ++i) {
    const Step &step = prepared.steps[i];
    const DeviceSet &devices = ranks[step.rank];
    const ProgramSpec &own = devices.plan.programs[program];
    const Command *at = &own.commands[step.command];
    if (auto *wait = std::get_if<CollectiveWaitCommand>(&at->operation))
      at = &own.commands[wait->start];
    const Command &command = *at;
    TracedStep &one =
        traced.steps.emplace_back(describeCommand(devices.plan, own, command));
    one.kind = step.kind == Step::Kind::Loop ? TracedStep::Kind::Loop
               : step.senders.empty()        ? TracedStep::Kind::Compute
                                             : TracedStep::Kind::Communication;
    one.name = ::nameOf(step, one.name, command);
    for (const Step::Access &access : step.accesses)
      one.bytes += access.bytes * step.calls.size();
    if (step.endsCollective())
      for (const Operand &operand : operandsOf(own, command))
        one.bytes +=
            own.buffers[operand.buffer].bytes * devices.layout.devices().size();
    one.flops = step.flops;
    if (auto *launch = std::get_if<LaunchCommand>(&command.operation);
        launch && launch->extent > 0) {
      one.flops = double(launch->matmulFlops) * step.calls.size() * step.group *
                  (step.last - step.first) / launch->extent;
      if (step.group > 1)
        one.name = devices.plan.kernels[launch->groupKernel];
    }
    one.wireBytes = step.wireBytes;
    one.devices = devicesOf(step, plan, devices, program, command);
    one.tasksPerCall = step.tiles * step.together;
    one.needsBarrier = step.needsBarrier;
    one.startedAt = step.startedAt;
    one.waitedAt = step.waitedAt;
    if (step.endsCollective()) {
      const Step &first = prepared.steps[step.startedAt];
      one.isEarly = step.startedAt < step.waitedAt &&
                    first.kind == Step::Kind::Collective &&
                    &own.commands[first.command] == &command;
    }
    // A loop has no span of its own, but its first step has.
    if (step.endsCollective() &&
        prepared.steps[step.startedAt].kind == Step::Kind::Loop)
      ++one.startedAt;
    one.rank = plan.pipeline ? step.rank : -1;
    if (i >= loopEnd)
      runs = 1;
    if (step.kind == Step::Kind::Loop) {
      loopEnd = i + 1 + step.length;
      runs = step.runs;
    } else {
      traced.spansPerRun += runs;
    }
  }
  // Starts, waits and messages in one place are commands without a step: of
  // these up to the next step of the rank the most.
  std::vector<size_t> ends;
  for (const std::vector<uint64_t> &commands : use)
    ends.push_back(commands.size());
  for (size_t i = prepared.steps.size(); i-- > 0;) {
    const Step &step = prepared.steps[i];
    const std::vector<uint64_t> &commands = use[step.rank];
    size_t end = std::max<size_t>(ends[step.rank], step.command + 1);
    traced.steps[i].arenaBytes = *std::max_element(
        commands.begin() + step.command, commands.begin() + end);
    ends[step.rank] = step.command;
  }
  return traced;
}

std::string shardc::rt::describePlan(const PlanSpec &plan) {
  nlohmann::ordered_json json;
  json["model"] = plan.model;
  for (const Mesh::Axis &axis : plan.mesh.axes())
    json["mesh"][axis.name] = axis.size;
  json["batch_size"] = plan.batchSize;
  json["peak_bytes_per_device"] = plan.arenaBytes;
  uint64_t wireBytes = 0, flops = 0;
  for (const PlanSpec &rank : plan.ranks())
    for (const ProgramSpec &program : rank.programs)
      if (program.name == "train_step") {
        wireBytes = std::max(wireBytes, program.wireBytes);
        flops = std::max(flops, program.matmulFlops);
      }
  json["wire_bytes_per_device"] = wireBytes;
  json["matmul_flops_per_device"] = flops;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {
/// The commands during which a buffer holds something.
struct Lifetime {
  size_t first = std::numeric_limits<size_t>::max(), last = 0;
  void cover(size_t from, size_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};
} // namespace

std::vector<uint64_t> shardc::rt::arenaUse(const PlanSpec &rank,
                                           const ProgramSpec &program) {
  std::vector<Lifetime> lives(program.buffers.size());
  std::vector<int64_t> runsOf(program.buffers.size(), 1);
  size_t loop = 0, loopEnd = 0;
  int64_t runs = 1;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Command &command = program.commands[i];
    if (i >= loopEnd)
      runs = 1;
    if (auto *start = std::get_if<LoopCommand>(&command.operation)) {
      loop = i;
      loopEnd = i + 1 + start->commands;
      runs = start->runs;
    }
    const Command *of = &command;
    if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation))
      of = &program.commands[wait->start];
    for (const Operand &operand : operandsOf(program, *of)) {
      Lifetime &life = lives[operand.buffer];
      // What a loop shares with the commands around it lives through it.
      if (i < loopEnd && life.first < loop)
        life.cover(loop, loopEnd - 1);
      if (i >= loopEnd && loopEnd > 0 && life.first > loop &&
          life.first < loopEnd)
        life.cover(loop, loopEnd - 1);
      life.cover(i, i);
      runsOf[operand.buffer] = std::max(runsOf[operand.buffer], runs);
    }
  }
  for (const ResultSpec &result : program.results)
    lives[result.buffer].cover(program.commands.size() - 1,
                               program.commands.size() - 1);

  // The bytes in use change where a life begins or ends.
  auto aligned = [&](ByteRange bytes) {
    bytes.end =
        (bytes.end + rank.alignment - 1) / rank.alignment * rank.alignment;
    return bytes;
  };
  std::vector<std::vector<uint32_t>> begins(program.commands.size());
  for (size_t buffer = 0; buffer < lives.size(); ++buffer)
    if (lives[buffer].first < program.commands.size())
      begins[lives[buffer].first].push_back(buffer);
  std::vector<uint32_t> live;
  std::vector<uint64_t> use(program.commands.size());
  for (size_t i = 0; i < use.size(); ++i) {
    live.insert(live.end(), begins[i].begin(), begins[i].end());
    std::vector<ByteRange> ranges;
    for (const TensorSpec &tensor : rank.tensors)
      ranges.push_back(aligned({tensor.offset, tensor.offset + tensor.bytes}));
    for (uint32_t buffer : live)
      ranges.push_back(
          aligned(bytesOf(program.buffers[buffer], runsOf[buffer])));
    std::sort(ranges.begin(), ranges.end(),
              [](ByteRange a, ByteRange b) { return a.begin < b.begin; });
    uint64_t end = 0;
    for (ByteRange range : ranges) {
      if (range.end > end)
        use[i] += range.end - std::max(range.begin, end);
      end = std::max(end, range.end);
    }
    live.erase(std::remove_if(
                   live.begin(), live.end(),
                   [&](uint32_t buffer) { return lives[buffer].last <= i; }),
               live.end());
  }
  return use;
}
