//===- ReadCode.cpp - The kernels of a plan -------------------------------===//

#include "plan/ReadPlan.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

using namespace shardc::rt;

static std::string codeOf(const flatbuffers::Vector<uint8_t> &code) {
  return std::string(reinterpret_cast<const char *>(code.data()), code.size());
}

static absl::Status readCpuCode(const fb::CpuCode &file, PlanSpec &plan) {
  CpuCode &code = plan.codeVersions.emplace_back();
  code.cpuTarget = file.cpu_target()->str();
  if (!plan.gpuTarget.empty())
    return absl::DataLossError(absl::StrCat("it has code for ", code.cpuTarget,
                                            ", and its kernels are for a GPU"));
  if (file.cpu_features())
    for (const flatbuffers::String *feature : *file.cpu_features())
      code.features.push_back(feature->str());
  code.code = codeOf(*file.code());
  return absl::OkStatus();
}

absl::Status shardc::rt::readCode(const fb::Plan &file, PlanSpec &plan) {
  absl::flat_hash_set<std::string> names;
  for (const flatbuffers::String *kernel : *file.kernels()) {
    plan.kernels.push_back(kernel->str());
    if (!names.insert(plan.kernels.back()).second)
      return absl::DataLossError(
          absl::StrCat("two kernels are named \"", plan.kernels.back(), "\""));
  }
  plan.code = codeOf(*file.code());
  if (file.wider_codes())
    for (const fb::CpuCode *entry : *file.wider_codes())
      if (absl::Status s = readCpuCode(*entry, plan); !s.ok())
        return s;
  if (!file.cubin())
    return absl::OkStatus();
  if (plan.gpuTarget.empty())
    return absl::DataLossError("it has a cubin, and its kernels are for a CPU");
  plan.cubin = codeOf(*file.cubin());
  return absl::OkStatus();
}
