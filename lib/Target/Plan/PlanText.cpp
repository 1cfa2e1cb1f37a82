//===- PlanText.cpp - Parts of a plan in words ----------------------------===//

#include "PlanText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

/// Where `plan` has its fingerprint; null if it lacks one.
static const uint8_t *getFingerprintField(const fb::Plan &plan) {
  return reinterpret_cast<const flatbuffers::Table &>(plan).GetAddressOf(
      fb::Plan::VT_FINGERPRINT);
}

uint64_t shardc::getFingerprint(StringRef bytes) {
  const uint8_t *field = getFingerprintField(*fb::GetPlan(bytes.data()));
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t &byte : arrayRefFromStringRef(bytes)) {
    bool isInField = &byte >= field && &byte < field + sizeof(uint64_t);
    hash = (hash ^ (isInField ? 0 : byte)) * 0x100000001b3;
  }
  return hash;
}

Expected<const fb::Plan *> shardc::readPlan(StringRef bytes) {
  flatbuffers::Verifier verifier(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  if (!fb::VerifyPlanBuffer(verifier))
    return createStringError(
        "not a shardc plan, or a damaged one: expected a FlatBuffers file with "
        "the identifier SHRD (" +
        Twine(bytes.size()) + " bytes read)");
  const fb::Plan *plan = fb::GetPlan(bytes.data());
  if (!getFingerprintField(*plan) ||
      getFingerprint(bytes) != plan->fingerprint())
    return createStringError(
        "damaged plan: its content does not match its fingerprint");
  return plan;
}

const fb::Program *shardc::findProgram(const fb::Plan &plan, StringRef name,
                                       int64_t rank) {
  for (const fb::Program *program : *plan.programs())
    if (program->name()->str() == name && program->rank() == rank)
      return program;
  return nullptr;
}

const fb::Program *shardc::findLargestProgram(const fb::Plan &plan,
                                              StringRef name) {
  const fb::Program *largest = nullptr;
  for (const fb::Program *program : *plan.programs())
    if (program->name()->str() == name &&
        (!largest || program->wire_bytes() > largest->wire_bytes()))
      largest = program;
  return largest;
}

std::string shardc::getTasksText(const fb::Program &program) {
  std::string text;
  if (program.tasks())
    for (const fb::Task *task : *program.tasks())
      text += (text.empty() ? "" : ",") + std::to_string(task->stage()) +
              "FBIW"[static_cast<int>(task->kind()) & 3] +
              std::to_string(task->microbatch());
  return text;
}

StringRef shardc::getName(fb::CollectiveKind kind) {
  switch (kind) {
  case fb::CollectiveKind::AllReduce:
    return "all_reduce";
  case fb::CollectiveKind::AllGather:
    return "all_gather";
  case fb::CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case fb::CollectiveKind::AllToAll:
    return "all_to_all";
  case fb::CollectiveKind::CollectivePermute:
    return "collective_permute";
  case fb::CollectiveKind::Send:
    return "send";
  }
  return "unknown";
}

StringRef shardc::getName(fb::Part part) {
  switch (part) {
  case fb::Part::Forward:
    return "forward";
  case fb::Part::Backward:
    return "backward";
  case fb::Part::Update:
    return "update";
  }
  return "unknown";
}

StringRef shardc::getName(fb::DType type) {
  switch (type) {
  case fb::DType::F32:
    return "f32";
  case fb::DType::BF16:
    return "bf16";
  case fb::DType::F64:
    return "f64";
  case fb::DType::I32:
    return "i32";
  case fb::DType::I64:
    return "i64";
  case fb::DType::Bool:
    return "bool";
  }
  return "unknown";
}

StringRef shardc::getName(fb::Role role) {
  switch (role) {
  case fb::Role::Parameter:
    return "parameter";
  case fb::Role::State:
    return "state";
  case fb::Role::Copy:
    return "copy";
  case fb::Role::Input:
    return "input";
  case fb::Role::Label:
    return "label";
  }
  return "unknown";
}

StringRef shardc::getName(fb::MemoryKind kind) {
  switch (kind) {
  case fb::MemoryKind::Parameters:
    return "parameters";
  case fb::MemoryKind::Gradients:
    return "gradients";
  case fb::MemoryKind::OptimizerStates:
    return "optimizer";
  case fb::MemoryKind::Activations:
    return "activations";
  case fb::MemoryKind::Inputs:
    return "inputs";
  case fb::MemoryKind::Workspace:
    return "workspace";
  }
  return "unknown";
}

SmallVector<int64_t>
shardc::toSizes(const flatbuffers::Vector<int64_t> *sizes) {
  if (!sizes)
    return {};
  return SmallVector<int64_t>(sizes->begin(), sizes->end());
}

std::string shardc::getShapeText(ArrayRef<int64_t> shape) {
  return "[" +
         join(map_range(shape, [](int64_t i) { return std::to_string(i); }),
              ", ") +
         "]";
}

/// The axes of dimension `dim`; those that the mesh lacks are left out.
static SmallVector<const fb::Axis *>
getAxes(const fb::Plan &plan, const fb::Sharding &sharding, unsigned dim) {
  SmallVector<const fb::Axis *> axes;
  if (const auto *indices = sharding.dims()->Get(dim)->axes())
    for (uint16_t index : *indices)
      if (index < plan.mesh()->axes()->size())
        axes.push_back(plan.mesh()->axes()->Get(index));
  return axes;
}

std::string shardc::getShardingText(const fb::Plan &plan,
                                    const fb::Sharding &sharding) {
  SmallVector<std::string> dims;
  for (unsigned dim = 0; dim < sharding.dims()->size(); ++dim)
    dims.push_back("{" +
                   join(map_range(getAxes(plan, sharding, dim),
                                  [](const fb::Axis *axis) {
                                    return "\"" + axis->name()->str() + "\"";
                                  }),
                        ", ") +
                   "}");
  return "[" + join(dims, ", ") + "]";
}

SmallVector<int64_t> shardc::getLocalShape(const fb::Plan &plan,
                                           ArrayRef<int64_t> shape,
                                           const fb::Sharding &sharding) {
  SmallVector<int64_t> local;
  for (auto [dim, size] : enumerate(shape)) {
    int64_t count = 1;
    for (const fb::Axis *axis : getAxes(plan, sharding, dim))
      count *= axis->size();
    int64_t shardSize = sharding.dims()->Get(dim)->shard_size();
    local.push_back(shardSize ? shardSize : (size + count - 1) / count);
  }
  return local;
}

int64_t shardc::getNumDevices(const fb::Plan &plan) {
  int64_t devices = 1;
  for (const fb::Axis *axis : *plan.mesh()->axes())
    devices *= axis->size();
  return devices;
}

uint64_t shardc::getRedundantFlops(const fb::Plan &plan,
                                   const fb::Program &program) {
  uint64_t share = program.global_matmul_flops() / getNumDevices(plan);
  // What is repeated on purpose is not redundant.
  if (share && program.recompute())
    share += program.recompute()->matmul_flops();
  return share && program.matmul_flops() > share
             ? program.matmul_flops() - share
             : 0;
}

std::optional<RegatherCost>
shardc::getRegatherCost(const fb::Plan &plan, const fb::Program &program) {
  const fb::Regather *table = program.regather();
  if (!table)
    return std::nullopt;
  RegatherCost cost;
  cost.isTaken = table->taken();
  cost.wireBytes = table->wire_bytes();
  cost.heldBytes = table->held_bytes();
  cost.peakBytes = plan.arena_bytes();
  if (table->other_peak_bytes())
    cost.otherPeakBytes = table->other_peak_bytes();
  return cost;
}

uint64_t shardc::getArenaBytes(const fb::Plan &plan,
                               const fb::Program &program) {
  const fb::Pipeline *pipeline = plan.pipeline();
  if (!pipeline || program.rank() < 0 ||
      static_cast<uint32_t>(program.rank()) >= pipeline->ranks()->size())
    return plan.arena_bytes();
  return pipeline->ranks()->Get(program.rank())->arena_bytes();
}

std::string shardc::getRecomputeText(const fb::Plan &plan,
                                     const fb::Program &program) {
  const fb::Recompute *table = program.recompute();
  if (!table)
    return "";
  std::string text =
      formatv("recomputation (--recompute={0}): {1} matmul FLOPs and {2} us by "
              "estimate again in the backward pass",
              table->policy() ? table->policy()->str() : "",
              table->matmul_flops(), getMicrosecondsText(table->seconds()))
          .str();
  if (table->other_arena_bytes())
    text += formatv(", a peak of {0} instead of {1} bytes",
                    getArenaBytes(plan, program), table->other_arena_bytes())
                .str();
  return text;
}

std::optional<PlanCost> shardc::getPlanCost(const fb::Program &program) {
  const fb::PlanCost *table = program.cost();
  if (!table || !table->objective())
    return std::nullopt;
  PlanCost cost{table->objective()->str(), table->cost(), table->at_least(),
                std::nullopt};
  if (table->cheapest() > 0)
    cost.cheapest = table->cheapest();
  if (table->within() > 0)
    cost.within = table->within();
  return cost;
}

double shardc::getSeconds(const fb::TimeEstimate &time) {
  return std::max(time.inputs(),
                  time.compute() + time.memory() + time.communication());
}

std::string shardc::getMicrosecondsText(double seconds) {
  return formatv("{0:f2}", seconds * 1e6).str();
}

std::string shardc::getMeshText(const fb::Plan &plan) {
  std::string text;
  for (const fb::Axis *axis : *plan.mesh()->axes())
    text += (text.empty() ? "" : ", ") + axis->name()->str() + "=" +
            std::to_string(axis->size());
  int64_t devices = getNumDevices(plan);
  return text + " (" + std::to_string(devices) +
         (devices == 1 ? " device)" : " devices)");
}

std::string shardc::getBytesText(uint64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  static constexpr StringRef units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = bytes / 1024.0;
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return formatv("{0:f1} {1}", value, units[unit]).str();
}

std::string
shardc::getTableText(const std::vector<std::vector<std::string>> &rows,
                     ArrayRef<unsigned> rightAligned) {
  std::vector<size_t> widths;
  for (const auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (auto [column, cell] : enumerate(row))
      widths[column] = std::max(widths[column], cell.size());
  }
  std::string text;
  for (const auto &row : rows) {
    std::string line = " ";
    for (auto [column, cell] : enumerate(row)) {
      std::string padding(widths[column] - cell.size(), ' ');
      line += is_contained(rightAligned, column) ? " " + padding + cell + " "
                                                 : " " + cell + padding + " ";
    }
    text += StringRef(line).rtrim().str() + "\n";
  }
  return text;
}
