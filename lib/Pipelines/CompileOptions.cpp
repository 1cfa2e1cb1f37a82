//===- CompileOptions.cpp - Checks of the options -------------------------===//

#include "shardc/Pipelines/CompileOptions.h"

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Dialect/Shardc/IR/TrainingText.h"
#include "shardc/Pipelines/OptionTable.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/Support/TargetSpec.h"

using namespace shardc;

/// The error of a text that only the compiler can read, or "".
static std::string checkText(CompileOption::Accepts accepts,
                             const std::string &text) {
  std::string error;
  switch (accepts) {
  case CompileOption::Accepts::Mesh:
    if (!text.empty())
      parseMeshSpec(text, error);
    return error;
  case CompileOption::Accepts::Target:
    parseTargetSpec(text, error);
    return error;
  case CompileOption::Accepts::Machine: {
    llvm::Expected<Machine> machine = loadMachine(text);
    return machine ? "" : llvm::toString(machine.takeError());
  }
  case CompileOption::Accepts::Optimizer:
    return text.empty() ? "" : checkOptimizer(text);
  case CompileOption::Accepts::Schedule:
    return text.empty() ? "" : checkSchedule(text);
  default:
    return "";
  }
}

std::string shardc::checkOptions(const CompileOptions &options) {
  for (const CompileOption &option : getCompileOptions()) {
    if (std::string error = checkValue(option, options); !error.empty())
      return error;
    OptionValue value = getValue(option, options);
    const auto *text = std::get_if<std::string>(&value);
    if (std::string error = text ? checkText(option.accepts, *text) : "";
        !error.empty())
      return "--" + std::string(option.name) + ": " + error;
  }
  return "";
}
