//===- OptionTable.cpp - The compile options, one row each ----------------===//

#include "shardc/Pipelines/OptionTable.h"

#include "shardc/Support/Suggest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

using namespace shardc;

using Accepts = CompileOption::Accepts;

const std::vector<CompileOption> &shardc::getCompileOptions() {
  static const std::vector<CompileOption> options = {
      {"mesh", &CompileOptions::mesh, "data=4,model=2", Accepts::Mesh, "import",
       "the model's", "Replace the sizes of the mesh's axes"},
      {"rules", &CompileOptions::rules,
       "batch=data,hidden=model,embed=", Accepts::Any, "import", "the model's",
       "Mesh axes of the logical axis names"},
      {"batch-size", &CompileOptions::batchSize, "rows", Accepts::Positive,
       "import", "the model's", "Replace the global batch size"},
      {"microbatches", &CompileOptions::microbatches, "number",
       Accepts::Positive, "import", "the model's",
       "Split the batch into this many microbatches, run one after the other, "
       "and accumulate their gradients"},
      {"stages", &CompileOptions::stages, "number", Accepts::NotNegative,
       "import", "the model's",
       "Size of the mesh axis of the pipeline's stages; 0: no pipeline"},
      {"pipeline-schedule", &CompileOptions::pipelineSchedule,
       "1f1b or file.csv", Accepts::Any, "import", "the model's, or 1f1b",
       "Order of the pipeline's tasks: gpipe, 1f1b, interleaved, zero-bubble, "
       "or a file in PyTorch's notation"},
      {"virtual-stages", &CompileOptions::virtualStages, "number",
       Accepts::Positive, "import", "the model's, or 1",
       "Stages of each rank of the pipeline, for interleaved"},
      {"recompute", &CompileOptions::recompute, "none|layer|stage|auto",
       Accepts::OneOf, "import", "the model's, or none",
       "What the backward pass computes again instead of keeping it: all but "
       "the inputs of layers; with a pipeline all but what stages receive; "
       "auto: what --device-memory asks for"},
      {"target", &CompileOptions::target, "cpu|cpu:x86-64-v3|cuda:sm_90",
       Accepts::Target, "codegen", "cpu; in shardc-run this computer's",
       "Target of code generation; cpu is x86-64-v3, with a version for v4"},
      {"dtype", &CompileOptions::dtype, "f32|bf16", Accepts::OneOf, "import",
       "the model's types",
       "Element type that a model of f32 computes in; parameters, states and "
       "the loss stay in f32"},
      {"optimizer", &CompileOptions::optimizer, "adam,b1=0.95",
       Accepts::Optimizer, "import", "the model's",
       "Replace the optimizer: sgd, momentum, adam or adamw, and its "
       "hyper-parameters"},
      {"learning-rate", &CompileOptions::learningRate, "rate", Accepts::Rate,
       "import", "the model's", "Replace the learning rate"},
      {"schedule", &CompileOptions::schedule,
       "cosine,warmup_steps=10,decay_steps=100", Accepts::Schedule, "import",
       "the model's",
       "Replace the learning-rate schedule: constant, linear_warmup or cosine, "
       "and its numbers"},
      {"clip-norm", &CompileOptions::clipNorm, "norm", Accepts::Norm, "import",
       "the model's",
       "Replace the largest global norm of the gradients; inf: no clipping"},
      {"matmul-precision", &CompileOptions::matmulPrecision,
       "highest|tf32|bf16", Accepts::OneOf, "plan", "",
       "Precision to which factors of large GEMMs of f32 may be rounded"},
      {"machine", &CompileOptions::machine, "file or name", Accepts::Machine,
       "plan", "",
       "Machine of the time estimates: a JSON file, cpu, a100-40, a100-80, "
       "h100 or h200"},
      {"partition", &CompileOptions::partition, "follow|cheapest",
       Accepts::OneOf, "propagate", "",
       "Planner of values without annotation: propagation of the annotations, "
       "or exact search"},
      {"objective", &CompileOptions::objective, "time|bytes", Accepts::OneOf,
       "propagate", "",
       "Objective of --partition=cheapest: the time of a step on --machine, or "
       "the bytes that a device sends"},
      {"gap", &CompileOptions::gap, "fraction", Accepts::Fraction, "propagate",
       "",
       "Relative gap at which --partition=cheapest may stop, by objective "
       "time: "
       "how far the plan may be above the lower bound"},
      {"device-memory", &CompileOptions::deviceMemory, "bytes",
       Accepts::NotNegative, "memory", "0, no limit",
       "Most bytes that the plan may need on a device"},
      {"bucket-bytes", &CompileOptions::bucketBytes, "bytes",
       Accepts::NotNegative, "collectives", "",
       "Most bytes of a bucket, several collectives merged into one; 0: no "
       "limit"},
      {"regather", &CompileOptions::regather, "", Accepts::Any, "partition", "",
       "Rematerialise all-gathers: gather weights again for the backward pass "
       "(FSDP2's reshard_after_forward); less memory, more bytes"},
      {"ignore-expect", &CompileOptions::ignoreExpectations, "", Accepts::Any,
       "memory", "", "Do not check the contracts of the model (shardc.expect)"},
      {"verify-partition", &CompileOptions::verifyPartition, "", Accepts::Any,
       "partition", "",
       "Compare the partitioned program with the global one in a reference "
       "interpreter"},
      {"verify-each", &CompileOptions::verifyEach, "", Accepts::Any, "plan", "",
       "Verify the IR after every pass, not only after every phase"},
      {"shardc-dump-dir", &CompileOptions::dumpDir, "directory", Accepts::Any,
       "plan", "", "Write the IR after each phase into this directory"},
  };
  return options;
}

std::vector<std::string> shardc::getChoices(const CompileOption &option) {
  std::vector<std::string> choices;
  std::istringstream values(option.value);
  for (std::string choice; std::getline(values, choice, '|');)
    choices.push_back(choice);
  return choices;
}

OptionValue shardc::getValue(const CompileOption &option,
                             const CompileOptions &options) {
  return std::visit([&](auto member) -> OptionValue { return options.*member; },
                    option.member);
}

OptionValue shardc::getJsonValue(const CompileOption &option,
                                 const CompileOptions &options) {
  OptionValue value = getValue(option, options);
  if (const auto *number = std::get_if<double>(&value);
      number && !std::isfinite(*number))
    value = toText(value);
  return value;
}

std::string shardc::toText(const OptionValue &value) {
  if (const auto *text = std::get_if<std::string>(&value))
    return *text;
  char digits[32];
  auto print = [&](auto number) {
    return std::string(
        digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  };
  if (const auto *flag = std::get_if<bool>(&value))
    return *flag ? "1" : "0";
  if (const auto *integer = std::get_if<int64_t>(&value))
    return print(*integer);
  return print(std::get<double>(value));
}

std::string shardc::describeDefault(const CompileOption &option) {
  OptionValue value = getValue(option, CompileOptions());
  if (*option.standard || std::holds_alternative<bool>(value))
    return option.standard;
  return toText(value);
}

/// Whether the option accepts `value`, as far as can be told without the
/// compiler.
static bool isAccepted(const CompileOption &option, const OptionValue &value) {
  switch (option.accepts) {
  case Accepts::Any:
  case Accepts::Mesh:
  case Accepts::Target:
  case Accepts::Machine:
  case Accepts::Optimizer:
  case Accepts::Schedule:
    return true;
  case Accepts::OneOf: {
    std::vector<std::string> choices = getChoices(option);
    return std::count(choices.begin(), choices.end(), toText(value)) > 0;
  }
  case Accepts::NotNegative:
    return std::get<int64_t>(value) >= 0;
  case Accepts::Positive:
    return std::get<int64_t>(value) >= 1;
  case Accepts::Fraction:
    return std::get<double>(value) >= 0 && std::get<double>(value) < 1;
  case Accepts::Rate:
    return std::get<double>(value) > 0 &&
           std::isfinite(std::get<double>(value));
  case Accepts::Norm:
    return std::get<double>(value) > 0;
  }
  return false;
}

/// The error for `text`, which is no value of the option.
static std::string refuseValue(const CompileOption &option,
                               const std::string &text) {
  std::string flag = "--" + std::string(option.name) + ": ";
  std::string found = flag + "'" + text + "' is not ";
  bool isInteger =
      std::holds_alternative<int64_t CompileOptions::*>(option.member);
  if (isInteger && text.find_first_not_of("0123456789") == text.npos &&
      text != "0")
    return found + "an integer of at most " +
           std::to_string(std::numeric_limits<int64_t>::max());
  switch (option.accepts) {
  case Accepts::OneOf:
    return flag + "unknown value '" + text + "'" +
           suggest(text, getChoices(option));
  case Accepts::NotNegative:
    return found + "an integer of at least 0";
  case Accepts::Positive:
    return found + "an integer of at least 1";
  case Accepts::Fraction:
    return found + "a number of at least 0 and less than 1";
  case Accepts::Rate:
  case Accepts::Norm:
    return found + "a number above 0";
  default:
    return found + "0 or 1";
  }
}

/// Reads a number that is all of `text`.
template <typename T>
static bool readNumber(const std::string &text, T &number) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

/// Reads an integer, also one with an exponent: "80e9" bytes.
static bool readInteger(const std::string &text, int64_t &integer) {
  if (readNumber(text, integer))
    return true;
  double number;
  // 2^63: doubles from there on are no integers of this type.
  if (text.find_first_of("eE") == text.npos || !readNumber(text, number) ||
      std::trunc(number) != number || std::abs(number) >= 0x1p63)
    return false;
  integer = static_cast<int64_t>(number);
  return true;
}

static bool readValue(const std::string &text, OptionValue &value) {
  if (auto *integer = std::get_if<int64_t>(&value))
    return readInteger(text, *integer);
  if (auto *number = std::get_if<double>(&value))
    return readNumber(text, *number);
  if (auto *flag = std::get_if<bool>(&value)) {
    *flag = text == "1";
    return text == "0" || text == "1";
  }
  value = text;
  return true;
}

std::string shardc::setOption(const CompileOption &option,
                              const std::string &text,
                              CompileOptions &options) {
  if (text.empty())
    return "--" + std::string(option.name) + ": expected a value, found none";
  OptionValue value = getValue(option, options);
  if (!readValue(text, value) || !isAccepted(option, value))
    return refuseValue(option, text);
  std::visit(
      [&](auto member) {
        auto &field = options.*member;
        field = std::get<std::decay_t<decltype(field)>>(value);
      },
      option.member);
  return "";
}

std::string shardc::checkValue(const CompileOption &option,
                               const CompileOptions &options) {
  OptionValue value = getValue(option, options);
  if (value == getValue(option, CompileOptions()) || isAccepted(option, value))
    return "";
  return refuseValue(option, toText(value));
}
