//===- PreparedProgram.cpp - A program bound to its arenas
//-----------------===//

#include "exec/PreparedProgram.h"

#include "absl/container/inlined_vector.h"
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
  case Kind::Clear:
    return 1;
  case Kind::Collective:
  case Kind::Loop:
    return 0;
  }
  return 0;
}

void *PreparedProgram::address(int64_t device, uint32_t buffer,
                               int64_t run) const {
  const BufferSpec &spec = program->buffers[buffer];
  return devices.arenas[device] + spec.offset + run * spec.stride;
}

void PreparedProgram::bind(Step &step,
                           const std::vector<uint32_t> &buffers) const {
  step.operands = buffers.size();
  for (int64_t device = 0; device < devices.size(); ++device)
    for (uint32_t buffer : buffers)
      step.table.push_back(address(device, buffer));
  bool moves = false;
  for (uint32_t buffer : buffers) {
    step.strides.push_back(program->buffers[buffer].stride);
    moves |= step.strides.back() > 0;
  }
  if (!moves)
    step.strides.clear();
}

CollectiveSpec PreparedProgram::bindCollective(const CollectiveCommand &command,
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
    for (int64_t device = 0; device < devices.size(); ++device) {
      tensor.in.push_back(address(device, item.in, run));
      tensor.out.push_back(address(device, item.out, run));
    }
  }
  return spec;
}

absl::Status PreparedProgram::addCollective(const CollectiveCommand &command,
                                            int64_t runs,
                                            Collectives &collectives,
                                            Step &step) const {
  bool moves = false;
  for (const CollectiveItem &item : command.items)
    moves |= program->buffers[item.in].stride > 0 ||
             program->buffers[item.out].stride > 0;
  for (int64_t run = 0; run < (moves ? runs : 1); ++run) {
    CollectiveSpec spec = bindCollective(command, run);
    step.wireBytes = wireBytes(devices.plan.mesh, spec);
    absl::StatusOr<std::unique_ptr<PreparedCollective>> prepared =
        collectives.prepare(devices.plan.mesh, std::move(spec));
    if (!prepared.ok())
      return prepared.status();
    step.collectives.push_back(*std::move(prepared));
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::addStep(const Command &command, int64_t runs,
                                      Collectives &collectives) {
  Step step;
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    step.kind = Step::Kind::Launch;
    step.kernel = devices.kernels.kernel(launch->kernel);
    step.extent = launch->extent;
    int64_t grains = (launch->extent + launch->grain - 1) / launch->grain;
    step.tileSize = std::max<int64_t>(1, (grains + maxTilesPerLaunch - 1) /
                                             maxTilesPerLaunch) *
                    launch->grain;
    if (byDevice)
      step.tileSize = std::max<int64_t>(1, step.extent);
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
  } else if (auto *clear = std::get_if<ClearCommand>(&command.operation)) {
    step.kind = Step::Kind::Clear;
    step.bytes = program->buffers[clear->buffer].bytes;
    bind(step, {clear->buffer});
  } else if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
    step.kind = Step::Kind::Loop;
    step.runs = loop->runs;
    step.length = loop->commands;
  } else {
    step.kind = Step::Kind::Collective;
    if (absl::Status status =
            addCollective(std::get<CollectiveCommand>(command.operation), runs,
                          collectives, step);
        !status.ok())
      return status;
  }
  steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PreparedProgram>>
PreparedProgram::prepare(const DeviceSet &devices, const ProgramSpec &spec,
                         Collectives &collectives, int workers) {
  std::unique_ptr<PreparedProgram> prepared(new PreparedProgram(devices, spec));
  // Whole devices need no meeting point between collectives, but must spread
  // evenly; where they do not, sharing every step is faster.
  int64_t count = devices.size();
  prepared->byDevice =
      count >= workers && (count % workers == 0 || count >= 4 * workers);
  int64_t runs = 1;
  size_t bodyEnd = 0;
  for (size_t i = 0; i < spec.commands.size(); ++i) {
    if (i >= bodyEnd)
      runs = 1;
    if (absl::Status status =
            prepared->addStep(spec.commands[i], runs, collectives);
        !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat("program \"", spec.name, "\", command ",
                                       i, ": ", status.message()));
    if (const Step &step = prepared->steps.back();
        step.kind == Step::Kind::Loop) {
      runs = step.runs;
      bodyEnd = i + 1 + step.length;
    }
  }
  return prepared;
}

void PreparedProgram::note(const absl::Status &status) {
  if (status.ok())
    return;
  std::lock_guard<std::mutex> lock(errorMutex);
  error.Update(status);
}

void PreparedProgram::runKernel(const Step &step, int64_t device, int64_t run,
                                void *const *table, int64_t begin,
                                int64_t end) {
  int64_t stride = devices.contextStride;
  const int64_t *context = devices.contexts.data() + device * stride;
  if (run == 0)
    return step.kernel(table, context, begin, end);
  absl::InlinedVector<int64_t, 8> ofRun(context, context + stride);
  ofRun.back() = run;
  step.kernel(table, ofRun.data(), begin, end);
}

void PreparedProgram::runTile(const Step &step, int64_t device, int64_t run,
                              int64_t tile) {
  void *const *table = step.table.data() + device * step.operands;
  absl::InlinedVector<void *, 16> moved;
  if (run > 0 && !step.strides.empty()) {
    for (int64_t i = 0; i < step.operands; ++i)
      moved.push_back(static_cast<char *>(table[i]) + run * step.strides[i]);
    table = moved.data();
  }
  switch (step.kind) {
  case Step::Kind::Launch:
    runKernel(step, device, run, table, tile * step.tileSize,
              std::min(step.extent, (tile + 1) * step.tileSize));
    break;
  case Step::Kind::Gemm:
    note(step.gemm->run(table[0], table[1], step.hasBias ? table[3] : nullptr,
                        table[2], tile));
    break;
  case Step::Kind::Copy:
    std::memmove(table[1], table[0], step.bytes);
    break;
  case Step::Kind::Clear:
    std::memset(table[0], 0, step.bytes);
    break;
  case Step::Kind::Collective:
  case Step::Kind::Loop:
    break;
  }
}

void PreparedProgram::runWhole(const Step &step, int64_t device, int64_t run) {
  for (int64_t tile = 0, tiles = step.numTiles(); tile < tiles; ++tile)
    runTile(step, device, run, tile);
}

void PreparedProgram::runCollective(const Step &step, int64_t run, int worker,
                                    int workers) {
  PreparedCollective &collective =
      *step.collectives[step.collectives.size() == 1 ? 0 : run];
  int64_t tasks = collective.numTasks();
  int64_t begin = tasks * worker / workers;
  int64_t end = tasks * (worker + 1) / workers;
  for (int64_t task = begin; task < end; ++task)
    note(collective.runTask(task));
}

void PreparedProgram::run(int worker, WorkerPool &pool, Counters &counters) {
  runRange({0, steps.size()}, worker, pool, counters);
}

void PreparedProgram::runRange(Range range, int worker, WorkerPool &pool,
                               Counters &counters) {
  using Clock = std::chrono::steady_clock;
  int workers = pool.size();
  int64_t firstDevice = devices.size() * worker / workers;
  int64_t lastDevice = devices.size() * (worker + 1) / workers;
  for (size_t index = range.begin; index < range.end;) {
    const Step &step = steps[index];
    if (step.kind == Step::Kind::Loop) {
      size_t end = index + 1 + step.length;
      for (int64_t run = 0; run < step.runs; ++run)
        runRange({index + 1, end, run}, worker, pool, counters);
      index = end;
      continue;
    }
    if (step.kind == Step::Kind::Collective) {
      if (byDevice)
        pool.barrier();
      Clock::time_point start = Clock::now();
      runCollective(step, range.run, worker, workers);
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
        runTile(step, task / tiles, range.run, task % tiles);
      ++index;
      // Steps of one task are all worker 0's: nobody waits between them.
      bool isAlone = tasks <= 1 && index < range.end &&
                     steps[index].isLocal() &&
                     steps[index].numTiles() * devices.size() <= 1;
      if (!isAlone)
        pool.barrier();
      continue;
    }
    // A run of local steps, device after device: what one leaves in the cache
    // the next finds there.
    size_t end = index;
    while (end < range.end && steps[end].isLocal())
      ++end;
    for (int64_t device = firstDevice; device < lastDevice; ++device)
      for (size_t i = index; i < end; ++i)
        runWhole(steps[i], device, range.run);
    index = end;
  }
}

absl::Status PreparedProgram::takeError() {
  std::lock_guard<std::mutex> lock(errorMutex);
  absl::Status taken = std::move(error);
  error = absl::OkStatus();
  return taken;
}
