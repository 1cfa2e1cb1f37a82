//===- PlanProperties.cpp - What all executors must share -----------------===//

#include "exec/PlanProperties.h"

#include "shardc-rt/Version.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

std::vector<RankProperty> shardc::rt::propertiesOf(const PlanSpec &plan,
                                                   uint64_t seed) {
  std::vector<RankProperty> properties;
  auto add = [&](const std::string &name, const absl::AlphaNum &value) {
    properties.push_back({name, absl::StrCat(name, " ", value)});
  };
  add("shardc", version());
  add("plan", absl::StrCat("", absl::Hex(plan.fingerprint, absl::kZeroPad16)));
  add("compiler", plan.producer);
  add("model", plan.model);
  add("mesh", plan.mesh.toString());
  add("batch size", plan.batchSize);
  add("target", plan.gpuTarget.empty() ? plan.cpuTarget : plan.gpuTarget);
  add("seed", seed);
  return properties;
}
