//===- ReadPlan.cpp - From the file's tables to a Plan --------------------===//
//
// Reads everything but commands and code, trusting nothing: enum values, sizes,
// offsets and indices are checked before use, in arithmetic that cannot
// overflow.
//
//===----------------------------------------------------------------------===//

#include "plan/ReadPlan.h"

#include "plan/CheckPipeline.h"
#include "shardc-rt/HostArray.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

using namespace shardc::rt;

/// A larger number of elements in a tensor means a damaged file.
static constexpr int64_t maxElements = int64_t(1) << 46;
static constexpr int64_t maxDevices = int64_t(1) << 20;
static constexpr int64_t maxMicrobatches = int64_t(1) << 16;

template <typename... Args>
static absl::Status bad(const Args &...args) {
  return absl::DataLossError(absl::StrCat(args...));
}

static std::string text(const flatbuffers::String *string) {
  return string ? string->str() : std::string();
}

/// Fails on negative sizes and on too many elements.
static absl::Status checkElements(absl::Span<const int64_t> shape,
                                  absl::string_view what) {
  int64_t elements = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > maxElements)
      return bad(what, " has a dimension of size ", size);
    if (size > 0 && elements > maxElements / size)
      return bad(what, " has too many elements");
    elements *= size;
  }
  return absl::OkStatus();
}

/// Copies a shape; fails as `checkElements`.
static absl::Status readShape(const flatbuffers::Vector<int64_t> *file,
                              absl::string_view what,
                              std::vector<int64_t> &shape) {
  if (!file)
    return absl::OkStatus();
  shape.assign(file->begin(), file->end());
  return checkElements(shape, what);
}

static absl::Status readMesh(const fb::Mesh &file, Mesh &mesh) {
  std::vector<Mesh::Axis> axes;
  absl::flat_hash_set<std::string> names;
  int64_t devices = 1;
  for (const fb::Axis *axis : *file.axes()) {
    std::string name = axis->name()->str();
    if (name.empty() || !names.insert(name).second)
      return bad("mesh axis names must be distinct and not empty, found \"",
                 name, "\"");
    if (axis->size() < 1 || devices > maxDevices / axis->size())
      return bad("mesh axis \"", name, "\" has size ", axis->size(),
                 "; a mesh has 1 to ", maxDevices, " devices");
    devices *= axis->size();
    axes.push_back({std::move(name), axis->size()});
  }
  mesh = Mesh(std::move(axes));
  return absl::OkStatus();
}

static absl::Status readSharding(const fb::Sharding *file,
                                 absl::Span<const int64_t> shape,
                                 const Mesh &mesh, absl::string_view what,
                                 Sharding &sharding) {
  if (!file || file->dims()->size() != shape.size())
    return bad(what, " needs a sharding of ", shape.size(), " dimensions");
  std::vector<bool> used(mesh.axes().size());
  std::vector<int64_t> shard;
  for (const fb::DimSharding *dim : *file->dims()) {
    std::vector<int> &axes = sharding.dims.emplace_back();
    if (dim->axes())
      for (uint16_t axis : *dim->axes()) {
        if (axis >= used.size() || used[axis])
          return bad(what, " is sharded over axis ", axis,
                     ", which the mesh lacks or another dimension has");
        used[axis] = true;
        axes.push_back(axis);
      }
    int64_t size = shape[shard.size()], shards = mesh.numShards(axes);
    int64_t least = (size + shards - 1) / shards;
    if (dim->shard_size() != 0 &&
        (dim->shard_size() < least || dim->shard_size() > maxElements / shards))
      return bad(what, " has shards of ", dim->shard_size(),
                 " entries in dimension ", shard.size(), "; ", size, " over ",
                 shards, " devices need at least ", least);
    sharding.shardSizes.push_back(dim->shard_size());
    shard.push_back(std::max(least, dim->shard_size()));
  }
  return checkElements(shard, what);
}

/// Checks that [offset, offset + bytes) lies in the arena, aligned unless it
/// may be a part of a buffer, and that `bytes` is the size of the local shape.
static absl::Status checkRange(const PlanSpec &plan, uint64_t offset,
                               uint64_t bytes, DType dtype,
                               absl::Span<const int64_t> shape,
                               absl::string_view what, bool isPart = false) {
  if (bytes != static_cast<uint64_t>(numElements(shape) * byteSize(dtype)))
    return bad(what, " takes ", bytes, " bytes, but ", describe(dtype, shape),
               " takes ", numElements(shape) * byteSize(dtype));
  if (offset > plan.arenaBytes || bytes > plan.arenaBytes - offset)
    return bad(what, " lies at bytes ", offset, " to ", offset + bytes,
               " of an arena of ", plan.arenaBytes);
  if (offset % plan.alignment != 0 && !isPart)
    return bad(what, " lies at byte ", offset, ", not aligned to ",
               plan.alignment);
  return absl::OkStatus();
}

static absl::Status readTensor(const fb::Tensor &file, const PlanSpec &plan,
                               TensorSpec &tensor) {
  tensor.name = file.name()->str();
  std::string what = absl::StrCat("tensor \"", tensor.name, "\"");
  if (tensor.name.empty())
    return bad("a tensor has no name");
  if (file.role() > fb::Role::MAX || file.role() < fb::Role::MIN ||
      file.dtype() > fb::DType::MAX || file.dtype() < fb::DType::MIN)
    return bad(what, " has an unknown role or element type");
  tensor.role = static_cast<Role>(file.role());
  tensor.dtype = static_cast<DType>(file.dtype());
  tensor.parameter = text(file.parameter());
  tensor.labelClasses = file.label_classes();
  tensor.offset = file.offset();
  tensor.bytes = file.bytes();
  if (absl::Status s = readShape(file.shape(), what, tensor.shape); !s.ok())
    return s;
  if (absl::Status s = readSharding(file.sharding(), tensor.shape, plan.mesh,
                                    what, tensor.sharding);
      !s.ok())
    return s;
  if (const fb::Initializer *init = file.init()) {
    if (init->kind() > fb::InitKind::MAX || init->kind() < fb::InitKind::MIN)
      return bad(what, " has an unknown initialiser");
    tensor.initializer = {static_cast<InitializerSpec::Kind>(init->kind()),
                          init->a(), init->b()};
  }
  return checkRange(plan, tensor.offset, tensor.bytes, tensor.dtype,
                    localShape(plan.mesh, tensor.sharding, tensor.shape), what);
}

static absl::Status readResults(const fb::Program &file, const PlanSpec &plan,
                                ProgramSpec &program) {
  for (const fb::Result *entry : *file.results()) {
    ResultSpec result;
    result.name = entry->name()->str();
    result.buffer = entry->buffer();
    std::string what = absl::StrCat("program \"", program.name, "\", result \"",
                                    result.name, "\"");
    if (result.buffer >= program.buffers.size())
      return bad(what, ": buffer ", result.buffer, " of ",
                 program.buffers.size());
    if (absl::Status s = readShape(entry->shape(), what, result.shape); !s.ok())
      return s;
    if (absl::Status s = readSharding(entry->sharding(), result.shape,
                                      plan.mesh, what, result.sharding);
        !s.ok())
      return s;
    if (localShape(plan.mesh, result.sharding, result.shape) !=
        program.buffers[result.buffer].shape)
      return bad(what, ": its buffer does not have the shape of its shard");
    program.results.push_back(std::move(result));
  }
  return absl::OkStatus();
}

static absl::Status readReports(const fb::Program &file, ProgramSpec &program) {
  if (!file.collectives())
    return absl::OkStatus();
  for (const fb::CollectiveReport *entry : *file.collectives()) {
    if (entry->kind() > fb::CollectiveKind::MAX ||
        entry->kind() < fb::CollectiveKind::MIN ||
        entry->part() > fb::Part::MAX || entry->part() < fb::Part::MIN)
      return bad("program \"", program.name,
                 "\": a line of the communication report is of unknown kind");
    CollectiveReport report;
    if (entry->kind() != fb::CollectiveKind::Send)
      report.kind = static_cast<CollectiveKind>(entry->kind());
    for (const flatbuffers::String *axis : *entry->axes())
      report.axes.push_back(axis->str());
    report.groupSize = entry->group_size();
    report.bytes = entry->bytes();
    report.wireBytes = entry->wire_bytes();
    report.part = static_cast<Part>(entry->part());
    report.source = text(entry->source());
    report.cause = text(entry->cause());
    report.runs = entry->runs();
    report.seconds = entry->seconds();
    if (!(report.seconds >= 0 && report.seconds < 1e9))
      return bad("program \"", program.name,
                 "\": a line of the communication report takes ",
                 report.seconds, " seconds");
    program.collectives.push_back(std::move(report));
  }
  return absl::OkStatus();
}

static absl::Status readTasks(const fb::Program &file, ProgramSpec &program) {
  if (!file.tasks())
    return absl::OkStatus();
  for (const fb::Task *entry : *file.tasks()) {
    if (entry->kind() > fb::TaskKind::MAX || entry->kind() < fb::TaskKind::MIN)
      return bad("program \"", program.name, "\", task ", program.tasks.size(),
                 " is of unknown kind");
    program.tasks.push_back({static_cast<TaskKind>(entry->kind()),
                             entry->stage(), entry->microbatch(),
                             entry->seconds()});
  }
  return absl::OkStatus();
}

/// `plan` is that of the devices that run the program.
static absl::Status readInputs(const fb::Program &file, const PlanSpec &plan,
                               ProgramSpec &program) {
  if (!file.inputs())
    return absl::OkStatus();
  size_t count =
      plan.rankAxis < 0 ? plan.tensors.size() : plan.tensorNumbers.size();
  std::vector<uint32_t> &inputs = program.inputs.emplace();
  for (uint32_t tensor : *file.inputs()) {
    std::string what =
        absl::StrCat("program \"", program.name, "\" takes tensor ", tensor);
    if (tensor >= count)
      return bad(what, " of ", count);
    if (!inputs.empty() && tensor <= inputs.back())
      return bad(what, " after tensor ", inputs.back());
    int64_t number = plan.numberOf(tensor);
    if (number < 0 || !isFed(plan.tensors[number].role))
      return bad(what, ", which is no input or label",
                 number < 0 ? " of its pipeline rank" : "");
    inputs.push_back(tensor);
  }
  return absl::OkStatus();
}

/// Whether `buffer`, of a pipeline, is one of the equal parts of a buffer of
/// `program`: the rows of a microbatch.
static bool areRows(const PlanSpec &plan, const ProgramSpec &program,
                    const BufferSpec &buffer) {
  return plan.rankAxis >= 0 && buffer.bytes > 0 &&
         absl::c_any_of(program.buffers, [&](const BufferSpec &whole) {
           return whole.dtype == buffer.dtype &&
                  whole.offset % plan.alignment == 0 &&
                  buffer.offset >= whole.offset &&
                  buffer.offset - whole.offset <= whole.bytes &&
                  buffer.bytes <=
                      whole.bytes - (buffer.offset - whole.offset) &&
                  (buffer.offset - whole.offset) % buffer.bytes == 0 &&
                  whole.bytes % buffer.bytes == 0;
         });
}

/// `plan` is that of the devices that run the program.
static absl::Status readProgram(const fb::Program &file, const PlanSpec &plan,
                                ProgramSpec &program) {
  program.name = file.name()->str();
  program.wireBytes = file.wire_bytes();
  program.matmulFlops = file.matmul_flops();
  program.peakBytes = file.peak_bytes();
  if (file.time()) {
    program.estimatedSeconds = file.time()->overlapped();
    program.estimatedOn = text(file.time()->machine());
  }
  for (const fb::Buffer *entry : *file.buffers()) {
    std::string what = absl::StrCat("program \"", program.name, "\", buffer ",
                                    program.buffers.size());
    if (entry->dtype() > fb::DType::MAX || entry->dtype() < fb::DType::MIN)
      return bad(what, " has an unknown element type");
    BufferSpec buffer{entry->offset(),
                      entry->bytes(),
                      static_cast<DType>(entry->dtype()),
                      {},
                      entry->stride()};
    if (absl::Status s = readShape(entry->shape(), what, buffer.shape); !s.ok())
      return s;
    bool isPart =
        buffer.offset % plan.alignment != 0 && areRows(plan, program, buffer);
    if (absl::Status s = checkRange(plan, buffer.offset, buffer.bytes,
                                    buffer.dtype, buffer.shape, what, isPart);
        !s.ok())
      return s;
    program.buffers.push_back(std::move(buffer));
  }
  if (absl::Status s = readReports(file, program); !s.ok())
    return s;
  if (absl::Status s = readResults(file, plan, program); !s.ok())
    return s;
  if (absl::Status s = readTasks(file, program); !s.ok())
    return s;
  if (absl::Status s = readInputs(file, plan, program); !s.ok())
    return s;
  return readCommands(file, plan, program);
}

static absl::Status readMemoryReport(const fb::MemoryReport &file,
                                     MemoryReport &report) {
  auto known = [](fb::MemoryKind kind) {
    return kind >= fb::MemoryKind::MIN && kind <= fb::MemoryKind::MAX;
  };
  if (file.entries())
    for (const fb::MemoryEntry *entry : *file.entries()) {
      if (!known(entry->kind()))
        return bad("the memory report has an entry of unknown kind");
      report.entries.push_back(
          {static_cast<MemoryKind>(entry->kind()), entry->bytes()});
    }
  if (file.largest())
    for (const fb::LargestBuffer *entry : *file.largest()) {
      if (!known(entry->kind()))
        return bad("the memory report has a buffer of unknown kind");
      report.largest.push_back({text(entry->name()), entry->bytes(),
                                static_cast<MemoryKind>(entry->kind()),
                                text(entry->source())});
    }
  return absl::OkStatus();
}

/// The cut into stages, and the plans of the ranks without tensors, kernels and
/// programs. The rest of `plan` but tensors, code and programs has been read.
static absl::Status readPipeline(const fb::Pipeline &file, PlanSpec &plan) {
  PipelineSpec &pipeline = plan.pipeline.emplace();
  pipeline.axis = file.axis();
  pipeline.schedule = file.schedule()->str();
  pipeline.microbatches = file.microbatches();
  pipeline.estimatedSeconds = file.seconds();
  if (file.axis() >= plan.mesh.axes().size())
    return bad("the pipeline is over axis ", file.axis(), " of ",
               plan.mesh.axes().size());
  std::vector<Mesh::Axis> axes(plan.mesh.axes().begin(),
                               plan.mesh.axes().end());
  int64_t numRanks = axes[pipeline.axis].size;
  axes[pipeline.axis].size = 1;
  if (file.ranks()->size() != numRanks)
    return bad("a pipeline of ", file.ranks()->size(), " ranks over axis \"",
               axes[pipeline.axis].name, "\" of size ", numRanks);
  if (pipeline.microbatches < 1 || pipeline.microbatches > maxMicrobatches)
    return bad("a pipeline of ", pipeline.microbatches,
               " microbatches; expected 1 to ", maxMicrobatches);
  for (uint16_t rank : *file.stages()) {
    if (rank >= numRanks)
      return bad("stage ", pipeline.stages.size(), " is on pipeline rank ",
                 rank, " of ", numRanks);
    pipeline.stages.push_back(rank);
  }
  uint64_t greatest = 0;
  for (const fb::PipelineRank *entry : *file.ranks()) {
    PlanSpec &rank = pipeline.ranks.emplace_back();
    rank.model = plan.model;
    rank.gpuTarget = plan.gpuTarget;
    rank.mesh = Mesh(axes);
    rank.rankAxis = pipeline.axis;
    rank.batchSize = plan.batchSize;
    rank.alignment = plan.alignment;
    rank.arenaBytes = entry->arena_bytes();
    if (entry->memory())
      if (absl::Status s = readMemoryReport(*entry->memory(), rank.memory);
          !s.ok())
        return s;
    if (rank.arenaBytes < greatest)
      continue;
    greatest = rank.arenaBytes;
    plan.memory = rank.memory;
  }
  if (greatest != plan.arenaBytes)
    return bad("an arena of ", plan.arenaBytes,
               " bytes, but the greatest of the pipeline ranks has ", greatest);
  return absl::OkStatus();
}

/// Gives the tensor to the ranks that hold it.
static absl::Status placeTensor(const fb::Tensor &file,
                                const TensorSpec &tensor, PlanSpec &plan) {
  std::string what = absl::StrCat("tensor \"", tensor.name, "\"");
  if (!plan.pipeline)
    return file.places() ? bad(what, " has places in a plan without a pipeline")
                         : absl::OkStatus();
  for (const std::vector<int> &axes : tensor.sharding.dims)
    if (absl::c_linear_search(axes, plan.pipeline->axis))
      return bad(what, " is sharded over the axis of the pipeline");
  if (!file.places() || file.places()->size() == 0 || tensor.offset != 0)
    return bad(what, " needs places on pipeline ranks, and no other");
  for (PlanSpec &rank : plan.pipeline->ranks)
    rank.tensorNumbers.push_back(-1);
  int last = -1;
  for (const fb::TensorPlace *place : *file.places()) {
    if (place->rank() >= plan.pipeline->ranks.size() || place->rank() <= last)
      return bad(what, " is on pipeline rank ", place->rank(), " of ",
                 plan.pipeline->ranks.size(), " after rank ", last);
    last = place->rank();
    PlanSpec &rank = plan.pipeline->ranks[last];
    rank.tensorNumbers.back() = rank.tensors.size();
    TensorSpec &placed = rank.tensors.emplace_back(tensor);
    placed.offset = place->offset();
    if (absl::Status s = checkRange(
            rank, placed.offset, placed.bytes, placed.dtype,
            localShape(rank.mesh, placed.sharding, placed.shape), what);
        !s.ok())
      return absl::DataLossError(
          absl::StrCat("pipeline rank ", last, ": ", s.message()));
  }
  return absl::OkStatus();
}

/// Reads the programs of the plan, or those of each pipeline rank.
static absl::Status readPrograms(const fb::Plan &file, PlanSpec &plan) {
  absl::flat_hash_set<std::pair<int, std::string>> names;
  for (const fb::Program *entry : *file.programs()) {
    ProgramSpec program;
    int numRanks = plan.pipeline ? plan.pipeline->ranks.size() : 0;
    if (plan.pipeline ? entry->rank() < 0 || entry->rank() >= numRanks
                      : entry->rank() != -1)
      return bad("program \"", entry->name()->str(), "\" is of pipeline rank ",
                 entry->rank(), " of ", numRanks);
    PlanSpec &own = plan.pipeline ? plan.pipeline->ranks[entry->rank()] : plan;
    std::string prefix =
        plan.pipeline ? absl::StrCat("pipeline rank ", entry->rank(), ": ")
                      : "";
    if (absl::Status s = readProgram(*entry, own, program); !s.ok())
      return bad(prefix, s.message());
    if (!names.emplace(entry->rank(), program.name).second)
      return bad(prefix, "two programs are named \"", program.name, "\"");
    own.programs.push_back(std::move(program));
  }
  for (const PlanSpec &rank : plan.ranks())
    if (absl::Status s = checkCopies(rank); !s.ok())
      return s;
  return plan.pipeline ? checkPipeline(plan) : absl::OkStatus();
}

absl::Status shardc::rt::readPlan(const fb::Plan &file, PlanSpec &plan) {
  plan.producer = text(file.producer());
  plan.model = text(file.model());
  plan.fingerprint = file.fingerprint();
  plan.cpuTarget = text(file.cpu_target());
  plan.gpuTarget = text(file.gpu_target());
  plan.noPrediction = text(file.no_prediction());
  plan.batchSize = file.batch_size();
  plan.arenaBytes = file.arena_bytes();
  plan.alignment = file.alignment();
  if (plan.alignment < 1 || plan.alignment > 4096 ||
      (plan.alignment & (plan.alignment - 1)) != 0)
    return bad("alignment ", plan.alignment,
               " is not a power of two of at most 4096");
  if (plan.batchSize < 0)
    return bad("batch size ", plan.batchSize, " is negative");
  if (absl::Status s = readMesh(*file.mesh(), plan.mesh); !s.ok())
    return s;
  if (file.pipeline())
    if (absl::Status s = readPipeline(*file.pipeline(), plan); !s.ok())
      return s;

  absl::flat_hash_set<std::string> names;
  for (const fb::Tensor *entry : *file.tensors()) {
    TensorSpec tensor;
    if (absl::Status s = readTensor(*entry, plan, tensor); !s.ok())
      return s;
    if (!names.insert(tensor.name).second)
      return bad("two tensors are named \"", tensor.name, "\"");
    if (absl::Status s = placeTensor(*entry, tensor, plan); !s.ok())
      return s;
    plan.tensors.push_back(std::move(tensor));
  }
  if (absl::Status s = readCode(file, plan); !s.ok())
    return s;
  if (plan.pipeline)
    for (PlanSpec &rank : plan.pipeline->ranks)
      rank.kernels = plan.kernels;
  if (absl::Status s = readPrograms(file, plan); !s.ok())
    return s;
  if (file.memory() && !plan.pipeline)
    return readMemoryReport(*file.memory(), plan.memory);
  return absl::OkStatus();
}
