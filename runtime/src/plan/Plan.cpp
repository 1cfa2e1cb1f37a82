//===- Plan.cpp - Reading plan files --------------------------------------===//
//
// A file is checked from the outside in: identifier, FlatBuffers structure,
// version, fingerprint, the CPU's features; then every value (ReadPlan.cpp).
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Plan.h"

#include "plan/CpuFeatures.h"
#include "plan/ReadPlan.h"
#include "plan_generated.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <fstream>
#include <sstream>

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
  if (plan->version() != planVersion)
    return absl::DataLossError(absl::StrCat(
        "plan of version ", plan->version(), "; this runtime reads version ",
        planVersion, ": compile the model again"));
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
  auto plan = std::make_shared<Plan>();
  if (absl::Status status = readPlan(*fb::GetPlan(bytes.data()), *plan);
      !status.ok())
    return absl::DataLossError(
        absl::StrCat("damaged plan: ", status.message()));
  return plan;
}

absl::StatusOr<std::shared_ptr<const Plan>>
Plan::loadFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad() || content.fail())
    return absl::DataLossError(absl::StrCat(path, ": cannot read"));
  absl::StatusOr<std::shared_ptr<const Plan>> plan =
      parse(std::move(content).str());
  if (!plan.ok())
    return absl::Status(plan.status().code(),
                        absl::StrCat(path, ": ", plan.status().message()));
  return plan;
}

const TensorSpec *Plan::findTensor(absl::string_view name) const {
  for (const TensorSpec &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

const ProgramSpec *Plan::findProgram(absl::string_view name) const {
  for (const ProgramSpec &program : programs)
    if (program.name == name)
      return &program;
  return nullptr;
}
