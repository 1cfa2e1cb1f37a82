//===- Plan.cpp - Reading plan files --------------------------------------===//
//
// A file is checked from the outside in: identifier, FlatBuffers structure,
// version, fingerprint, the CPU's features; then every value (ReadPlan.cpp).
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Plan.h"

#include "base/ReadFile.h"
#include "plan/CpuFeatures.h"
#include "plan/PlanSpec.h"
#include "plan/ReadPlan.h"
#include "plan_generated.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

absl::string_view shardc::rt::toString(Role role) {
  constexpr absl::string_view names[] = {"parameter", "state", "input", "label",
                                         "copy"};
  return names[static_cast<int>(role)];
}

absl::string_view shardc::rt::toString(Part part) {
  constexpr absl::string_view names[] = {"forward", "backward", "update"};
  return names[static_cast<int>(part)];
}

absl::string_view shardc::rt::toString(CollectiveKind kind) {
  constexpr absl::string_view names[] = {"all_reduce", "all_gather",
                                         "reduce_scatter", "all_to_all",
                                         "collective_permute"};
  return names[static_cast<int>(kind)];
}

absl::string_view shardc::rt::toString(MemoryKind kind) {
  constexpr absl::string_view names[] = {"parameters", "gradients",
                                         "optimizer",  "activations",
                                         "inputs",     "workspace"};
  return names[static_cast<int>(kind)];
}

absl::string_view shardc::rt::toString(TaskKind kind) {
  constexpr absl::string_view names[] = {"F", "B", "I", "W"};
  return names[static_cast<int>(kind)];
}

absl::string_view shardc::rt::toString(Stream stream) {
  constexpr absl::string_view names[] = {"compute", "communication", "copies"};
  return names[static_cast<int>(stream)];
}

/// FNV-1a over `bytes`, the eight at `hole` taken as zero.
static uint64_t fingerprintOf(absl::string_view bytes, size_t hole) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bool zero = i >= hole && i < hole + sizeof(uint64_t);
    hash ^= zero ? 0 : static_cast<uint8_t>(bytes[i]);
    hash *= 0x100000001b3u;
  }
  return hash;
}

static absl::Status verifyFile(const std::string &bytes) {
  if (bytes.size() < 8 || !fb::PlanBufferHasIdentifier(bytes.data()))
    return absl::DataLossError(
        "not a shardc plan: the file does not start as one (expected the "
        "identifier SHRD at byte 4)");
  flatbuffers::Verifier verifier(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
      /*max_depth=*/64, /*max_tables=*/1u << 28);
  if (!fb::VerifyPlanBuffer(verifier))
    return absl::DataLossError(
        "damaged plan: the file is truncated or its structure is broken");
  const fb::Plan *plan = fb::GetPlan(bytes.data());
  if (plan->version() != planVersion && plan->version() != pipelinePlanVersion)
    return absl::DataLossError(
        absl::StrCat("plan of version ", plan->version(),
                     "; this runtime reads versions ", planVersion, " and ",
                     pipelinePlanVersion, ": compile the model again"));
  if ((plan->version() == pipelinePlanVersion) != (plan->pipeline() != nullptr))
    return absl::DataLossError(
        absl::StrCat("damaged plan: version ", plan->version(),
                     plan->pipeline() ? " with" : " without", " a pipeline"));
  const uint8_t *field =
      reinterpret_cast<const flatbuffers::Table *>(plan)->GetAddressOf(
          fb::Plan::VT_FINGERPRINT);
  if (!field)
    return absl::DataLossError("damaged plan: it has no fingerprint");
  size_t hole = field - reinterpret_cast<const uint8_t *>(bytes.data());
  if (fingerprintOf(bytes, hole) != plan->fingerprint())
    return absl::DataLossError(
        "damaged plan: its content does not match its fingerprint");
  if (plan->cpu_features())
    for (const flatbuffers::String *feature : *plan->cpu_features())
      if (!cpuHasFeature({feature->data(), feature->size()}))
        return absl::UnavailableError(absl::StrCat(
            "the plan is compiled for ",
            plan->cpu_target() ? plan->cpu_target()->str() : "another CPU",
            " and this CPU lacks ", feature->str()));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Plan>> Plan::parse(std::string bytes) {
  if (absl::Status status = verifyFile(bytes); !status.ok())
    return status;
  PlanSpec spec;
  if (absl::Status status = readPlan(*fb::GetPlan(bytes.data()), spec);
      !status.ok())
    return absl::DataLossError(
        absl::StrCat("damaged plan: ", status.message()));
  return makeUnverifiedPlan(std::move(spec));
}

absl::StatusOr<std::shared_ptr<const Plan>>
Plan::loadFile(const std::string &path) {
  absl::StatusOr<std::string> bytes = readFile(path);
  if (!bytes.ok())
    return bytes.status();
  absl::StatusOr<std::shared_ptr<const Plan>> plan = parse(*std::move(bytes));
  if (!plan.ok())
    return absl::Status(plan.status().code(),
                        absl::StrCat(path, ": ", plan.status().message()));
  return plan;
}

/// The element of `list` with this name, or null.
template <typename T>
static const T *findIn(absl::Span<const T> list, absl::string_view name) {
  for (const T &entry : list)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

const TensorSpec *PlanSpec::findTensor(absl::string_view name) const {
  return findIn<TensorSpec>(tensors, name);
}

const ProgramSpec *PlanSpec::findProgram(absl::string_view name) const {
  const ProgramSpec *found = nullptr;
  for (const PlanSpec &rank : ranks()) {
    const ProgramSpec *program = findIn<ProgramSpec>(rank.programs, name);
    if (!found || (program && program->wireBytes > found->wireBytes))
      found = program;
  }
  return found;
}

int PlanSpec::firstRankWith(size_t tensor) const {
  int rank = 0;
  while (ranks()[rank].numberOf(tensor) < 0)
    ++rank;
  return rank;
}

int64_t PlanSpec::deviceOf(int rank, int64_t device) const {
  if (!pipeline)
    return device;
  int64_t inner = 1;
  for (size_t axis = pipeline->axis + 1; axis < mesh.axes().size(); ++axis)
    inner *= mesh.axes()[axis].size;
  int64_t numRanks = pipeline->ranks.size();
  return (device / inner * numRanks + rank) * inner + device % inner;
}

bool PlanSpec::takes(size_t program, size_t tensor) const {
  return isFed(tensors[tensor].role) &&
         absl::c_any_of(ranks(), [&](const PlanSpec &rank) {
           const auto &inputs = rank.programs[program].inputs;
           return !inputs || absl::c_binary_search(*inputs, tensor);
         });
}

DeviceRange PlanSpec::devicesOf(int rank, DeviceRange devices) const {
  DeviceRange own;
  for (int64_t device = 0; device < ranks()[rank].mesh.numDevices(); ++device)
    if (devices.contains(deviceOf(rank, device))) {
      if (own.size() == 0)
        own.first = device;
      own.last = device + 1;
    }
  return own;
}

int PlanSpec::rankOfResults(size_t program) const {
  for (size_t rank = 0; rank < ranks().size(); ++rank)
    if (!ranks()[rank].programs[program].results.empty())
      return rank;
  return 0;
}

/// Answers to queries of hosts that the content does not hold directly.
struct Plan::View {
  std::string mesh;
  std::vector<AxisInfo> axes;
  std::vector<TensorInfo> tensors;
  std::vector<ProgramInfo> programs;
};

static TensorInfo toInfo(const TensorSpec &tensor, const Mesh &mesh) {
  TensorInfo info = tensor;
  for (const std::vector<int> &axes : tensor.sharding.dims) {
    std::vector<std::string> &names = info.axes.emplace_back();
    for (int axis : axes)
      names.push_back(mesh.axes()[axis].name);
  }
  info.shardShape = localShape(mesh, tensor.sharding, tensor.shape);
  return info;
}

/// `rank` is that of the pipeline, or negative.
static CollectiveInfo toInfo(const CollectiveReport &report, int rank) {
  CollectiveInfo info;
  info.kind = report.kind ? std::string(toString(*report.kind)) : "send";
  info.axes = report.axes;
  info.groupSize = report.groupSize;
  info.bytes = report.bytes;
  info.wireBytes = report.wireBytes;
  info.runs = report.runs;
  info.seconds = report.seconds;
  info.part = std::string(toString(report.part));
  info.source = report.source;
  info.cause = report.cause;
  info.rank = rank;
  return info;
}

Plan::Plan(std::unique_ptr<const PlanSpec> spec) : ownSpec(std::move(spec)) {
  auto made = std::make_unique<View>();
  made->mesh = ownSpec->mesh.toString();
  for (const Mesh::Axis &axis : ownSpec->mesh.axes())
    made->axes.push_back({axis.name, axis.size});
  for (const TensorSpec &tensor : ownSpec->tensors)
    if (tensor.role != Role::Copy)
      made->tensors.push_back(toInfo(tensor, ownSpec->mesh));
  for (size_t number = 0; number < ownSpec->ranks()[0].programs.size();
       ++number) {
    if (ownSpec->ranks()[0].programs[number].name == roundingProgram)
      continue;
    ProgramInfo &info = made->programs.emplace_back();
    for (size_t tensor = 0; tensor < ownSpec->tensors.size(); ++tensor)
      if (ownSpec->takes(number, tensor))
        info.inputs.push_back(ownSpec->tensors[tensor].name);
    for (size_t rank = 0; rank < ownSpec->ranks().size(); ++rank) {
      const ProgramSpec &program = ownSpec->ranks()[rank].programs[number];
      info.name = program.name;
      for (const ResultSpec &result : program.results)
        info.results.push_back(
            {result.name, program.buffers[result.buffer].dtype, result.shape});
      info.wireBytes = std::max(info.wireBytes, program.wireBytes);
      info.matmulFlops = std::max(info.matmulFlops, program.matmulFlops);
      for (const CollectiveReport &report : program.collectives)
        info.collectives.push_back(
            toInfo(report, ownSpec->pipeline ? static_cast<int>(rank) : -1));
    }
  }
  view = std::move(made);
}

Plan::~Plan() = default;

std::shared_ptr<const Plan> shardc::rt::makeUnverifiedPlan(PlanSpec spec) {
  return std::shared_ptr<const Plan>(
      new Plan(std::make_unique<const PlanSpec>(std::move(spec))));
}

absl::Status shardc::rt::missingProgram(const PlanSpec &plan,
                                        absl::string_view name) {
  bool isExplained = name == "predict" && !plan.noPrediction.empty();
  return absl::NotFoundError(absl::StrCat(
      "the plan has no program \"", name, "\"", isExplained ? ": " : "",
      isExplained ? plan.noPrediction : ""));
}

const std::string &Plan::producer() const { return ownSpec->producer; }
const std::string &Plan::model() const { return ownSpec->model; }
uint64_t Plan::fingerprint() const { return ownSpec->fingerprint; }
const std::string &Plan::target() const {
  return isForGpu() ? ownSpec->gpuTarget : ownSpec->cpuTarget;
}
bool Plan::isForGpu() const { return !ownSpec->gpuTarget.empty(); }
const std::string &Plan::mesh() const { return view->mesh; }
absl::Span<const AxisInfo> Plan::axes() const { return view->axes; }
int64_t Plan::numDevices() const { return ownSpec->mesh.numDevices(); }
int64_t Plan::batchSize() const { return ownSpec->batchSize; }
uint64_t Plan::arenaBytes() const { return ownSpec->arenaBytes; }
const std::string &Plan::noPrediction() const { return ownSpec->noPrediction; }
absl::Span<const TensorInfo> Plan::tensors() const { return view->tensors; }
absl::Span<const ProgramInfo> Plan::programs() const { return view->programs; }
const TensorInfo *Plan::findTensor(absl::string_view name) const {
  return findIn<TensorInfo>(view->tensors, name);
}
const ProgramInfo *Plan::findProgram(absl::string_view name) const {
  return findIn<ProgramInfo>(view->programs, name);
}
