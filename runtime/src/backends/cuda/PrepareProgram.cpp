//===- PrepareProgram.cpp - What a program needs before it is issued ------===//

#include "backends/cuda/Program.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// Calls `visit` with each command that is no loop and the runs of the loop it
/// is in, which is 1 outside of loops.
template <typename Visit>
static absl::Status forEachCommand(const ProgramSpec &program, Visit visit) {
  int64_t runs = 1;
  uint32_t left = 0;
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    if (auto *loop = std::get_if<LoopCommand>(&program.commands[i].operation)) {
      runs = loop->runs;
      left = loop->commands;
      continue;
    }
    if (absl::Status s = visit(i, runs); !s.ok())
      return s;
    if (left > 0 && --left == 0)
      runs = 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Program>> Program::prepare(const DeviceSet &set,
                                                          size_t number) {
  std::unique_ptr<Program> program(new Program(set, number));
  if (absl::Status s =
          forEachCommand(program->spec,
                         [&](uint32_t command, int64_t runs) {
                           return program->annotate(
                               program->prepareCommand(command, runs), command);
                         });
      !s.ok())
    return s;
  if (absl::Status s = program->prepareEvents(); !s.ok())
    return s;
  return program;
}

absl::Status Program::prepareCommand(uint32_t number, int64_t runs) {
  const Command &command = spec.commands[number];
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return prepareCollective(number, runs);
  auto *gemm = std::get_if<GemmCommand>(&command.operation);
  if (!gemm)
    return absl::OkStatus();
  if (gemm->m == 0 || gemm->n == 0 || gemm->batch == 0)
    return gemm->columnSums < 0 || spec.buffers[gemm->columnSums].bytes == 0
               ? absl::OkStatus()
               : absl::UnimplementedError("sums of columns by a GEMM "
                                          "without elements on a GPU");
  if (gemm->k == 0)
    return absl::UnimplementedError("a GEMM of empty factors on a GPU");
  std::vector<GemmRequest> requests = gemmRequests(spec);
  auto request =
      std::find_if(requests.begin(), requests.end(),
                   [&](const GemmRequest &of) { return of.number == number; });
  for (const std::unique_ptr<Gpu> &gpu : set.gpus) {
    auto first = std::find_if(
        set.devices.begin(), set.devices.end(),
        [&](const Device &device) { return device.gpu == gpu.get(); });
    absl::StatusOr<std::unique_ptr<Gemm>> prepared = Gemm::prepare(
        *gpu->gemms, *request,
        placesOf(*gemm,
                 [&](uint32_t buffer) { return address(*first, buffer, 0); }),
        set.maxGemmWorkspace, set.choices);
    if (!prepared.ok())
      return prepared.status();
    workspaceSize = std::max(workspaceSize, (*prepared)->workspaceBytes());
    gemms[number].push_back(*std::move(prepared));
  }
  return absl::OkStatus();
}

absl::Status Program::prepareCollective(uint32_t number, int64_t runs) {
  auto &command =
      std::get<CollectiveStartCommand>(spec.commands[number].operation);
  bool moves = false;
  for (const CollectiveItem &item : command.items)
    moves |=
        spec.buffers[item.in].stride > 0 || spec.buffers[item.out].stride > 0;
  auto pointer = [&](const Device &device, uint32_t buffer, int64_t run) {
    return reinterpret_cast<void *>(
        static_cast<uintptr_t>(address(device, buffer, run)));
  };
  for (int64_t run = 0; run < (moves ? runs : 1); ++run) {
    CollectiveSpec bound{
        command.kind, command.reduction, command.axes, command.targetAxes, {}};
    for (const CollectiveItem &item : command.items) {
      CollectiveTensor &tensor = bound.tensors.emplace_back();
      tensor.dtype = spec.buffers[item.in].dtype;
      tensor.inShape = spec.buffers[item.in].shape;
      tensor.outShape = spec.buffers[item.out].shape;
      tensor.dim = item.dim;
      tensor.splitDim = item.splitDim;
      for (const Device &device : set.devices) {
        tensor.in.push_back(pointer(device, item.in, run));
        tensor.out.push_back(pointer(device, item.out, run));
      }
    }
    if (run == 0)
      wireSize += rt::wireBytes(set.plan.mesh, bound) * runs;
    joinNeighbours(bound, set.plan.alignment);
    absl::StatusOr<std::unique_ptr<DeviceCollective>> prepared =
        set.collectives.prepare(set.plan.mesh, bound);
    if (!prepared.ok())
      return prepared.status();
    collectives[number].push_back(*std::move(prepared));
  }
  return absl::OkStatus();
}

absl::Status Program::prepareEvents() {
  auto add = [&](const Gpu &gpu, std::vector<Event> &list) {
    absl::StatusOr<Event> event = Event::create(*gpu.context);
    if (event.ok())
      list.push_back(*std::move(event));
    return event.status();
  };
  for (const Command &command : spec.commands)
    for (uint32_t other : command.after)
      for (std::vector<Event> &list = events[other];
           list.size() < set.devices.size();)
        if (absl::Status s = add(*set.devices[list.size()].gpu, list); !s.ok())
          return s;
  for (const std::unique_ptr<Gpu> &gpu : set.gpus) {
    Ends &of = ends.emplace_back();
    for (const Device &device : set.devices)
      for (const std::shared_ptr<Stream> &stream : device.streams) {
        if (device.gpu != gpu.get() ||
            std::find(of.streams.begin(), of.streams.end(), stream.get()) !=
                of.streams.end())
          continue;
        of.streams.push_back(stream.get());
        if (absl::Status s = add(*gpu, of.ends); !s.ok())
          return s;
      }
    if (absl::Status s = add(*gpu, of.begin); !s.ok())
      return s;
  }
  return absl::OkStatus();
}
