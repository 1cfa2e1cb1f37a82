//===- PreparedProgram.cpp - A program bound to its arenas
//-----------------===//

#include "exec/PreparedProgram.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace shardc::rt;

/// Tiles that one launch is cut into at most, where workers share steps.
static constexpr int64_t maxTilesPerLaunch = 16;

int64_t PreparedProgram::Step::numTiles() const {
  switch (kind) {
  case Kind::Launch:
    return (extent + tileSize - 1) / tileSize;
  case Kind::Gemm:
    return gemm->numTiles();
  case Kind::Copy:
    return 1;
  case Kind::Start:
    return 1;
  case Kind::Wait:
    return collective->numTasks();
  }
  return 0;
}

void *PreparedProgram::address(int64_t device, uint32_t buffer) const {
  return devices.arenas[device] + program->buffers[buffer].offset;
}

void PreparedProgram::bind(Step &step,
                           const std::vector<uint32_t> &buffers) const {
  step.operands = buffers.size();
  for (int64_t device = 0; device < devices.size(); ++device)
    for (uint32_t buffer : buffers)
      step.table.push_back(address(device, buffer));
}

CollectiveSpec
PreparedProgram::bindCollective(const CollectiveStartCommand &command) const {
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
    for (int64_t device = 0; device < devices.size(); ++device) {
      tensor.in.push_back(address(device, item.in));
      tensor.out.push_back(address(device, item.out));
    }
  }
  return spec;
}

absl::Status PreparedProgram::addStart(uint32_t number,
                                       const CollectiveStartCommand &command,
                                       Collectives &backend) {
  CollectiveSpec spec = bindCollective(command);
  joinNeighbours(spec, devices.plan.alignment);
  absl::StatusOr<std::unique_ptr<PreparedCollective>> prepared =
      backend.prepare(devices.plan.mesh, std::move(spec));
  if (!prepared.ok())
    return prepared.status();
  if ((*prepared)->startsEarly()) {
    Step &step = steps.emplace_back();
    step.kind = Step::Kind::Start;
    step.collective = prepared->get();
  }
  collectives[number] = *std::move(prepared);
  return absl::OkStatus();
}

absl::Status PreparedProgram::addStep(uint32_t number, Collectives &backend) {
  const Command &command = program->commands[number];
  if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation))
    return addStart(number, *start, backend);
  Step step;
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    step.kind = Step::Kind::Launch;
    step.kernel = devices.kernels.kernel(launch->kernel);
    step.extent = launch->extent;
    int64_t grains = (launch->extent + launch->grain - 1) / launch->grain;
    step.tileSize = std::max<int64_t>(1, (grains + maxTilesPerLaunch - 1) /
                                             maxTilesPerLaunch) *
                    launch->grain;
    bind(step, launch->buffers);
  } else if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    step.kind = Step::Kind::Gemm;
    absl::StatusOr<std::unique_ptr<PreparedGemm>> prepared =
        PreparedGemm::prepare(*gemm, program->buffers[gemm->a].dtype);
    if (!prepared.ok())
      return prepared.status();
    step.gemm = *std::move(prepared);
    step.hasBias = gemm->bias >= 0;
    std::vector<uint32_t> buffers = {gemm->a, gemm->b, gemm->c};
    if (step.hasBias)
      buffers.push_back(gemm->bias);
    bind(step, buffers);
  } else if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    step.kind = Step::Kind::Copy;
    step.bytes = program->buffers[copy->in].bytes;
    bind(step, {copy->in, copy->out});
  } else {
    // A sound plan waits once for what it started (checkCollectives).
    uint32_t start = std::get<CollectiveWaitCommand>(command.operation).start;
    step.kind = Step::Kind::Wait;
    step.collective = collectives[start].get();
    step.wireBytes = wireBytes(devices.plan.mesh,
                               bindCollective(std::get<CollectiveStartCommand>(
                                   program->commands[start].operation)));
  }
  steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
PreparedProgram::prepare(const DeviceSet &devices, const ProgramSpec &spec,
                         Collectives &collectives, int workers) {
  std::unique_ptr<PreparedProgram> prepared(new PreparedProgram(devices, spec));
  for (size_t i = 0; i < spec.commands.size(); ++i)
    if (absl::Status status = prepared->addStep(i, collectives); !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat("program \"", spec.name, "\", command ",
                                       i, ": ", status.message()));
  // Whole devices need no meeting point between collectives, but must spread
  // evenly; where they do not, sharing every step is faster.
  int64_t count = devices.size();
  prepared->byDevice =
      count >= workers && (count % workers == 0 || count >= 4 * workers);
  return prepared;
}

void PreparedProgram::note(const absl::Status &status) {
  if (status.ok())
    return;
  std::lock_guard<std::mutex> lock(errorMutex);
  error.Update(status);
}

void PreparedProgram::runTile(const Step &step, int64_t device, int64_t tile) {
  void *const *table = step.table.data() + device * step.operands;
  switch (step.kind) {
  case Step::Kind::Launch:
    step.kernel(table, devices.contexts.data() + device * devices.contextStride,
                tile * step.tileSize,
                std::min(step.extent, (tile + 1) * step.tileSize));
    break;
  case Step::Kind::Gemm:
    note(step.gemm->run(table[0], table[1], step.hasBias ? table[3] : nullptr,
                        table[2], tile));
    break;
  case Step::Kind::Copy:
    std::memmove(table[1], table[0], step.bytes);
    break;
  case Step::Kind::Start:
  case Step::Kind::Wait:
    break;
  }
}

void PreparedProgram::runWhole(const Step &step, int64_t device) {
  if (step.kind == Step::Kind::Launch) {
    if (step.extent > 0)
      step.kernel(step.table.data() + device * step.operands,
                  devices.contexts.data() + device * devices.contextStride, 0,
                  step.extent);
    return;
  }
  for (int64_t tile = 0, tiles = step.numTiles(); tile < tiles; ++tile)
    runTile(step, device, tile);
}

void PreparedProgram::runTasks(const Step &step, int worker, int workers) {
  int64_t tasks = step.collective->numTasks();
  int64_t begin = tasks * worker / workers;
  int64_t end = tasks * (worker + 1) / workers;
  for (int64_t task = begin; task < end; ++task)
    note(step.collective->runTask(task));
}

void PreparedProgram::run(int worker, WorkerPool &pool, Counters &counters) {
  using Clock = std::chrono::steady_clock;
  int workers = pool.size();
  int64_t firstDevice = devices.size() * worker / workers;
  int64_t lastDevice = devices.size() * (worker + 1) / workers;
  for (size_t index = 0; index < steps.size();) {
    const Step &step = steps[index];
    if (!step.isLocal()) {
      if (byDevice)
        pool.barrier();
      if (step.kind == Step::Kind::Start) {
        if (worker == 0)
          note(step.collective->start());
        if (!byDevice)
          pool.barrier();
        ++index;
        continue;
      }
      Clock::time_point start = Clock::now();
      runTasks(step, worker, workers);
      pool.barrier();
      if (worker == 0) {
        counters.wireBytes += step.wireBytes;
        counters.communicationSeconds +=
            std::chrono::duration<double>(Clock::now() - start).count();
      }
      ++index;
      continue;
    }
    if (!byDevice) {
      int64_t tiles = step.numTiles(), tasks = tiles * devices.size();
      for (int64_t task = worker; task < tasks; task += workers)
        runTile(step, task / tiles, task % tiles);
      ++index;
      // Steps of one task are all worker 0's: nobody waits between them.
      bool isAlone = tasks <= 1 && index < steps.size() &&
                     steps[index].isLocal() &&
                     steps[index].numTiles() * devices.size() <= 1;
      if (!isAlone)
        pool.barrier();
      continue;
    }
    // A run of local steps, device after device: what one leaves in the cache
    // the next finds there.
    size_t end = index;
    while (end < steps.size() && steps[end].isLocal())
      ++end;
    for (int64_t device = firstDevice; device < lastDevice; ++device)
      for (size_t i = index; i < end; ++i)
        runWhole(steps[i], device);
    index = end;
  }
}

absl::Status PreparedProgram::takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  absl::Status taken = std::move(error);
  error = absl::OkStatus();
  return taken;
}
