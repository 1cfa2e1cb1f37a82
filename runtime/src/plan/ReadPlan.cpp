//===- ReadPlan.cpp - From the file's tables to a Plan --------------------===//
//
// Reads everything but commands and code, trusting nothing: enum values, sizes,
// offsets and indices are checked before use, in arithmetic that cannot
// overflow.
//
//===----------------------------------------------------------------------===//

#include "plan/ReadPlan.h"

#include "shardc-rt/HostArray.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

using namespace shardc::rt;

/// A larger number of elements in a tensor means a damaged file.
static constexpr int64_t maxElements = int64_t(1) << 46;
static constexpr int64_t maxDevices = int64_t(1) << 20;

template <typename... Args>
static absl::Status bad(const Args &...args) {
  return absl::DataLossError(absl::StrCat(args...));
}

static std::string text(const flatbuffers::String *string) {
  return string ? string->str() : std::string();
}

/// Copies a shape; fails on negative sizes and on too many elements.
static absl::Status readShape(const flatbuffers::Vector<int64_t> *file,
                              absl::string_view what,
                              std::vector<int64_t> &shape) {
  int64_t elements = 1;
  if (!file)
    return absl::OkStatus();
  for (int64_t size : *file) {
    if (size < 0 || size > maxElements)
      return bad(what, " has a dimension of size ", size);
    if (size > 0 && elements > maxElements / size)
      return bad(what, " has too many elements");
    elements *= size;
    shape.push_back(size);
  }
  return absl::OkStatus();
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

static absl::Status readSharding(const fb::Sharding *file, size_t rank,
                                 const Mesh &mesh, absl::string_view what,
                                 Sharding &sharding) {
  if (!file || file->dims()->size() != rank)
    return bad(what, " needs a sharding of ", rank, " dimensions");
  std::vector<bool> used(mesh.axes().size());
  for (const fb::DimSharding *dim : *file->dims()) {
    std::vector<int> &axes = sharding.dims.emplace_back();
    if (!dim->axes())
      continue;
    for (uint16_t axis : *dim->axes()) {
      if (axis >= used.size() || used[axis])
        return bad(what, " is sharded over axis ", axis,
                   ", which the mesh lacks or another dimension has");
      used[axis] = true;
      axes.push_back(axis);
    }
  }
  return absl::OkStatus();
}

/// Checks that [offset, offset + bytes) lies aligned in the arena and that
/// `bytes` is the size of the local shape.
static absl::Status checkRange(const PlanSpec &plan, uint64_t offset,
                               uint64_t bytes, DType dtype,
                               absl::Span<const int64_t> shape,
                               absl::string_view what) {
  if (bytes != static_cast<uint64_t>(numElements(shape) * byteSize(dtype)))
    return bad(what, " takes ", bytes, " bytes, but ", describe(dtype, shape),
               " takes ", numElements(shape) * byteSize(dtype));
  if (offset > plan.arenaBytes || bytes > plan.arenaBytes - offset)
    return bad(what, " lies at bytes ", offset, " to ", offset + bytes,
               " of an arena of ", plan.arenaBytes);
  if (offset % plan.alignment != 0)
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
  if (absl::Status s = readSharding(file.sharding(), tensor.shape.size(),
                                    plan.mesh, what, tensor.sharding);
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
    if (absl::Status s = readSharding(entry->sharding(), result.shape.size(),
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
    program.collectives.push_back(std::move(report));
  }
  return absl::OkStatus();
}

static absl::Status readProgram(const fb::Program &file, const PlanSpec &plan,
                                ProgramSpec &program) {
  program.name = file.name()->str();
  program.wireBytes = file.wire_bytes();
  program.matmulFlops = file.matmul_flops();
  program.peakBytes = file.peak_bytes();
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
    if (absl::Status s = checkRange(plan, buffer.offset, buffer.bytes,
                                    buffer.dtype, buffer.shape, what);
        !s.ok())
      return s;
    program.buffers.push_back(std::move(buffer));
  }
  if (absl::Status s = readReports(file, program); !s.ok())
    return s;
  if (absl::Status s = readResults(file, plan, program); !s.ok())
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

absl::Status shardc::rt::readPlan(const fb::Plan &file, PlanSpec &plan) {
  plan.producer = text(file.producer());
  plan.model = text(file.model());
  plan.fingerprint = file.fingerprint();
  plan.cpuTarget = text(file.cpu_target());
  plan.gpuTarget = text(file.gpu_target());
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

  absl::flat_hash_set<std::string> names;
  for (const fb::Tensor *entry : *file.tensors()) {
    TensorSpec tensor;
    if (absl::Status s = readTensor(*entry, plan, tensor); !s.ok())
      return s;
    if (!names.insert(tensor.name).second)
      return bad("two tensors are named \"", tensor.name, "\"");
    plan.tensors.push_back(std::move(tensor));
  }
  if (absl::Status s = readCode(file, plan); !s.ok())
    return s;
  names.clear();
  for (const fb::Program *entry : *file.programs()) {
    ProgramSpec program;
    if (absl::Status s = readProgram(*entry, plan, program); !s.ok())
      return s;
    if (!names.insert(program.name).second)
      return bad("two programs are named \"", program.name, "\"");
    plan.programs.push_back(std::move(program));
  }
  if (absl::Status s = checkCopies(plan); !s.ok())
    return s;
  if (file.memory())
    return readMemoryReport(*file.memory(), plan.memory);
  return absl::OkStatus();
}
