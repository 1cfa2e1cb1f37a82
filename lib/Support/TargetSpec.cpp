//===- TargetSpec.cpp - Names of targets ----------------------------------===//

#include "shardc/Support/TargetSpec.h"

#include "shardc/Support/Suggest.h"

#include <algorithm>

using namespace shardc;

std::optional<TargetSpec> shardc::parseTargetSpec(const std::string &text,
                                                  std::string &error) {
  const std::string cpu = "cpu:", cuda = "cuda:";
  const std::vector<std::string> levels = {"x86-64-v3", "x86-64-v4"};
  // From Ampere on. Later ones need no entry: their drivers compile the PTX of
  // any of these.
  const std::vector<std::string> chips = {"sm_80", "sm_86", "sm_87", "sm_89",
                                          "sm_90"};
  if (text == "cpu")
    return TargetSpec();
  if (text == "emulated-gpu")
    return TargetSpec{TargetSpec::Kind::EmulatedGPU, "", ""};
  if (text.compare(0, cpu.size(), cpu) == 0) {
    std::string level = text.substr(cpu.size());
    if (std::find(levels.begin(), levels.end(), level) != levels.end())
      return TargetSpec{TargetSpec::Kind::CPU, level, ""};
    error = "unknown level of x86-64 '" + level + "'" + suggest(level, levels);
    return std::nullopt;
  }
  if (text.compare(0, cuda.size(), cuda) == 0) {
    std::string chip = text.substr(cuda.size());
    if (std::find(chips.begin(), chips.end(), chip) != chips.end())
      return TargetSpec{TargetSpec::Kind::CUDA, "", chip};
    error = "unknown GPU '" + chip + "'" + suggest(chip, chips);
    return std::nullopt;
  }
  std::vector<std::string> targets = {"cpu"};
  for (const std::string &level : levels)
    targets.push_back(cpu + level);
  for (const std::string &chip : chips)
    targets.push_back(cuda + chip);
  targets.push_back("emulated-gpu");
  error = "unknown target '" + text + "'" + suggest(text, targets);
  return std::nullopt;
}
