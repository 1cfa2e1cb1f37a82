//===- PrepareProgram.cpp - Binds a program to its arenas -----------------===//

#include "exec/PreparedProgram.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

char *PreparedProgram::address(int64_t device, uint32_t buffer,
                               int64_t run) const {
  return devices.memory + devices.layout.offsetOf(number, buffer, device, run);
}

void PreparedProgram::setStrides(Step &step,
                                 const std::vector<uint32_t> &buffers) const {
  bool moves = false;
  for (uint32_t buffer : buffers) {
    step.strides.push_back(program->buffers[buffer].stride);
    moves |= step.strides.back() > 0;
  }
  if (!moves)
    step.strides.clear();
}

void PreparedProgram::bind(Step &step, const std::vector<Operand> &operands,
                           const std::vector<uint32_t> &buffers) const {
  step.operands = buffers.size();
  setStrides(step, buffers);
  for (uint32_t buffer : buffers) {
    Touched &touched = step.touched.emplace_back();
    for (const Operand &operand : operands)
      if (operand.buffer == buffer) {
        touched.bytes = program->buffers[buffer].bytes;
        touched.isWrite |= operand.isWrite;
      }
  }
  for (int64_t device : devices.layout.devicesFor(number, operands)) {
    step.calls.push_back(
        {devices.contexts.data() + device * devices.contextStride,
         step.table.size()});
    for (uint32_t buffer : buffers)
      step.table.push_back(address(device, buffer));
  }
}

/// One step for neighbouring parts that run for the same devices.
void PreparedProgram::addLaunch(const LaunchCommand &launch) {
  int64_t next = 0;
  for (size_t i = 0; i < launch.parts.size();) {
    Step &step = steps.emplace_back();
    step.kind = Step::Kind::Launch;
    step.kernel = devices.kernels.kernel(launch.kernel);
    step.grain = launch.grain;
    step.first = next;
    std::vector<Operand> operands = operandsOf(launch, launch.parts[i]);
    std::vector<int64_t> of = devices.layout.devicesFor(number, operands);
    for (; i < launch.parts.size(); ++i) {
      std::vector<Operand> more = operandsOf(launch, launch.parts[i]);
      if (devices.layout.devicesFor(number, more) != of)
        break;
      operands.insert(operands.end(), more.begin(), more.end());
      next += launch.parts[i].extent;
    }
    step.last = next;
    step.tiles = (step.last - step.first + launch.grain - 1) / launch.grain;
    bind(step, operands, launch.buffers);
  }
}

CollectiveSpec
PreparedProgram::bindCollective(const CollectiveStartCommand &command,
                                int64_t run) const {
  CollectiveSpec spec;
  spec.kind = command.kind;
  spec.reduction = command.reduction;
  spec.axes = command.axes;
  spec.targetAxes = command.targetAxes;
  for (const CollectiveItem &item : command.items) {
    CollectiveTensor &tensor = spec.tensors.emplace_back();
    tensor.dtype = program->buffers[item.in].dtype;
    tensor.inShape = program->buffers[item.in].shape;
    tensor.outShape = program->buffers[item.out].shape;
    tensor.dim = item.dim;
    tensor.splitDim = item.splitDim;
    tensor.isReduced = devices.layout.isSummed(number, item.in);
    for (int64_t device = 0; device < devices.size(); ++device) {
      tensor.in.push_back(address(device, item.in, run));
      tensor.out.push_back(address(device, item.out, run));
    }
  }
  return spec;
}

absl::Status PreparedProgram::addStart(uint32_t command, int64_t runs,
                                       Collectives &backend) {
  auto &start =
      std::get<CollectiveStartCommand>(program->commands[command].operation);
  bool moves = false;
  for (const CollectiveItem &item : start.items)
    moves |= program->buffers[item.in].stride > 0 ||
             program->buffers[item.out].stride > 0;
  PreparedCollectives &ofRuns = collectives[command];
  for (int64_t run = 0; run < (moves ? runs : 1); ++run) {
    absl::StatusOr<std::unique_ptr<PreparedCollective>> prepared =
        backend.prepare(devices.plan.mesh, bindCollective(start, run));
    if (!prepared.ok())
      return prepared.status();
    ofRuns.push_back(*std::move(prepared));
  }
  if (ofRuns[0]->startsEarly()) {
    Step &step = steps.emplace_back();
    step.kind = Step::Kind::Start;
    step.collectives = &ofRuns;
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::addStep(uint32_t number, int64_t runs,
                                      Collectives &backend) {
  const Command &command = program->commands[number];
  if (std::holds_alternative<CollectiveStartCommand>(command.operation))
    return addStart(number, runs, backend);
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    addLaunch(*launch);
    return absl::OkStatus();
  }
  if (auto *gemm = std::get_if<GemmCommand>(&command.operation))
    return addGemm(number, *gemm);
  Step step;
  if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    step.kind = Step::Kind::Copy;
    step.bytes = program->buffers[copy->in].bytes;
    bind(step, operandsOf(command), {copy->in, copy->out});
  } else if (auto *clear = std::get_if<ClearCommand>(&command.operation)) {
    step.kind = Step::Kind::Clear;
    step.bytes = program->buffers[clear->buffer].bytes;
    bind(step, operandsOf(command), {clear->buffer});
  } else if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
    step.kind = Step::Kind::Loop;
    step.runs = loop->runs;
  } else {
    // A sound plan waits once for what it started (checkCollectives).
    uint32_t start = std::get<CollectiveWaitCommand>(command.operation).start;
    step.kind = Step::Kind::Wait;
    step.collectives = &collectives[start];
    step.wireBytes =
        wireBytes(devices.plan.mesh,
                  bindCollective(std::get<CollectiveStartCommand>(
                                     program->commands[start].operation),
                                 /*run=*/0));
  }
  steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status PreparedProgram::addSteps(Collectives &backend) {
  // The step of the loop that the next command is in, and the commands left.
  size_t loop = 0;
  uint32_t left = 0;
  for (size_t i = 0; i < program->commands.size(); ++i) {
    int64_t runs = left > 0 ? steps[loop].runs : 1;
    if (absl::Status status = addStep(i, runs, backend); !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat("program \"", program->name,
                                       "\", command ", i, ": ",
                                       status.message()));
    if (auto *command =
            std::get_if<LoopCommand>(&program->commands[i].operation)) {
      loop = steps.size() - 1;
      left = command->commands;
    } else if (left > 0 && --left == 0) {
      steps[loop].length = steps.size() - loop - 1;
    }
  }
  return absl::OkStatus();
}

void PreparedProgram::placeBarriers() {
  Barriers barriers(workers);
  size_t loopEnd = steps.size();
  int64_t runs = 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    Step &step = steps[i];
    if (i == loopEnd) {
      barriers.accessAll();
      runs = 1;
    }
    switch (step.kind) {
    case Step::Kind::Loop:
      // The last step of a run comes before the first of the next.
      barriers.accessAll();
      loopEnd = i + 1 + step.length;
      runs = step.runs;
      continue;
    case Step::Kind::Start:
      // What follows leaves alone what the collective touches, up to the wait.
      step.needsBarrier = true;
      barriers.accessAll();
      continue;
    case Step::Kind::Wait:
      step.needsBarrier = (*step.collectives)[0]->numTasks() > 0;
      if (step.needsBarrier)
        barriers.accessAll();
      continue;
    default:
      break;
    }
    for (int worker = 0; worker < workers; ++worker) {
      TaskRange range(step.numTasks(), worker, workers);
      if (range.begin == range.end)
        continue;
      size_t first = range.begin / step.tiles;
      size_t last = (range.end - 1) / step.tiles;
      for (int64_t operand = 0; operand < step.operands; ++operand)
        for (size_t call = first; call <= last; ++call) {
          uint64_t bytes = step.touched[operand].bytes;
          if (!step.strides.empty())
            bytes += (runs - 1) * step.strides[operand];
          barriers.access(worker,
                          step.table[step.calls[call].buffers + operand], bytes,
                          step.touched[operand].isWrite);
        }
    }
    step.needsBarrier = barriers.endStep();
  }
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
PreparedProgram::prepare(const DeviceSet &devices, size_t program,
                         Collectives &collectives, int workers) {
  std::unique_ptr<PreparedProgram> prepared(
      new PreparedProgram(devices, program, workers));
  if (absl::Status status = prepared->addSteps(collectives); !status.ok())
    return status;
  prepared->placeBarriers();
  return prepared;
}
