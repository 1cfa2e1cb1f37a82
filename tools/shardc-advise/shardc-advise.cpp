//===- shardc-advise.cpp - How to shard a model ---------------------------===//
//
// Compiles a model in all ways that might be good, and ranks the plans.
//
//===----------------------------------------------------------------------===//

#include "shardc/Advice/AdviceReport.h"
#include "shardc/Driver/CommandLine.h"
#include "shardc/Driver/ReadModel.h"
#include "shardc/Models/EditSource.h"
#include "shardc/Support/Arguments.h"
#include "shardc/Support/CheckNesting.h"
#include "shardc/Support/InputBytes.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/QuoteForShell.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/WriteErrors.h"
#include "shardc/Support/WriteFile.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

#include <unistd.h>

using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("shardc-advise options");

static cl::opt<std::string> input(cl::Positional, cl::cat(category),
                                  cl::init("-"), cl::desc("<model.mlir>"));
static cl::list<std::string>
    devices("devices", cl::CommaSeparated, cl::cat(category),
            cl::value_desc("8 or 1,2,4,8"),
            cl::desc("Number of devices; several: how it scales; required"));
static cl::list<std::string>
    axes("axes", cl::CommaSeparated, cl::cat(category),
         cl::value_desc("data,model"),
         cl::desc("Axes that meshes may have, of stage, replica, shard, data "
                  "and model (default: all)"));
static cl::list<std::string>
    fix("fix", cl::CommaSeparated, cl::cat(category),
        cl::value_desc("w0,model=2"),
        cl::desc("What is not to be changed: annotations of the model's "
                 "arguments, by name, and sizes of mesh axes"));
static cl::opt<std::string> rows("rows", cl::cat(category), cl::init("10"),
                                 cl::value_desc("number"),
                                 cl::desc("Rows of the table (default: 10)"));
static cl::opt<std::string>
    output("o", cl::cat(category), cl::value_desc("file"),
           cl::desc("File for the model, annotated as the best plan is"));
static cl::opt<bool> json("json", cl::cat(category),
                          cl::desc("Advice as one JSON object"));

/// Compile options that candidates choose, or that no trial has.
static const std::set<std::string> &getOtherOptions() {
  static const std::set<std::string> names = {
      "mesh",           "rules",           "stages",        "pipeline-schedule",
      "virtual-stages", "shardc-dump-dir", "ignore-expect", "verify-partition",
      "verify-each"};
  return names;
}

static int fail(ExitCode code, const std::string &message) {
  llvm::errs() << "shardc-advise: error: " << makePrintable(message) << '\n';
  return static_cast<int>(code);
}

/// Reads a number of at least 1 from all of `text`.
static bool readNumber(llvm::StringRef text, int64_t most, int64_t &number) {
  return !text.getAsInteger(10, number) && number >= 1 && number <= most;
}

static std::string readDevices(std::vector<int64_t> &numbers) {
  if (devices.empty())
    return "--devices: expected a number such as --devices=8";
  for (const std::string &text : devices) {
    int64_t number;
    if (!readNumber(text, maxMeshDevices, number))
      return "--devices: expected numbers from 1 to " +
             std::to_string(maxMeshDevices) + ", found '" + text + "'";
    if (llvm::is_contained(numbers, number))
      return "--devices: " + text + " is given twice";
    numbers.push_back(number);
  }
  return "";
}

static std::string checkAxis(const char *flag, const std::string &axis) {
  return llvm::is_contained(getStrategyAxes(), axis)
             ? ""
             : std::string(flag) + ": unknown axis '" + axis + "'" +
                   suggest(axis, getStrategyAxes());
}

/// Reads what is not to be changed.
static std::string readFix(AdviceRequest &request) {
  for (const std::string &text : fix) {
    if (text.find('=') == text.npos) {
      request.model.fixedArguments.insert(text);
      continue;
    }
    std::string error;
    std::optional<MeshSpec> mesh = parseMeshSpec(text, error);
    if (!mesh)
      return "--fix: " + error;
    for (const auto &[axis, size] : *mesh) {
      if (std::string error = checkAxis("--fix", axis); !error.empty())
        return error;
      request.limits.fixedAxes.emplace_back(axis, size);
    }
  }
  return "";
}

/// Reads the flags into `request`; returns the first error, or "".
static std::string readFlags(const CompileOptionsFlags &flags,
                             AdviceRequest &request,
                             std::vector<int64_t> &numbers) {
  if (std::string error = flags.check(); !error.empty())
    return error;
  if (std::string error = readDevices(numbers); !error.empty())
    return error;
  for (const std::string &axis : axes)
    if (std::string error = checkAxis("--axes", axis); !error.empty())
      return error;
  if (std::string error = readFix(request); !error.empty())
    return error;
  int64_t number;
  if (!readNumber(rows, 1'000'000, number))
    return "--rows: '" + rows + "' is not an integer of at least 1";
  request.rows = number;
  if (!output.empty() && numbers.size() > 1)
    return "-o writes the model for one number of devices; expected one in "
           "--devices";
  request.model.options = flags.get();
  request.limits.axes = {axes.begin(), axes.end()};
  for (const CompileOption *option : flags.getGiven()) {
    std::string name = option->name;
    if (name == "microbatches")
      request.limits.microbatches = request.model.options.microbatches;
    else if (name == "recompute")
      request.limits.recompute = request.model.options.recompute;
    else if (name == "partition")
      request.limits.partition = request.model.options.partition;
    else if (name == "regather")
      request.isRegatherGiven = request.model.options.regather;
  }
  if (request.limits.recompute == "auto")
    return "--recompute: plans that do not fit are tried with recomputation "
           "anyway; expected none, layer or stage";
  return checkOutputs({{"the model", input}}, {{"-o " + output, output}},
                      request.model.options);
}

/// Prints a line on a terminal that says what is being tried.
static void showProgress(size_t done, size_t all, const std::string &name) {
  llvm::errs() << llvm::formatv("\r\x1b[K[{0}/{1}] {2}", done, all, name);
}

/// Why there is no mesh of `number` devices within `limits`.
static std::string explainNoMesh(int64_t number, const CandidateLimits &limits,
                                 int64_t batchSize) {
  int64_t product = 1;
  for (const auto &[axis, size] : limits.fixedAxes) {
    std::string found = "--fix: " + axis + "=" + std::to_string(size);
    if (number % size != 0)
      return found + " does not divide the " + std::to_string(number) +
             " devices of --devices";
    product *= size;
    if (!limits.axes.empty() && !llvm::is_contained(limits.axes, axis))
      return found + " is an axis that --axes leaves out";
  }
  if (number % product != 0)
    return "--fix: the sizes together, " + std::to_string(product) +
           ", do not divide the " + std::to_string(number) +
           " devices of --devices";
  return "there is no mesh of " + std::to_string(number) +
         " devices within --axes and --fix for a batch of " +
         std::to_string(batchSize);
}

/// The model of the best plan, with the command that compiles it to that plan.
static std::string getAnnotated(const AdviceRequest &request,
                                const Advice &advice,
                                const CompileOptionsFlags &flags) {
  const Candidate &candidate = advice.getBest()->candidate;
  std::string command = "// shardc-compile " + quoteForShell(output);
  std::string own = candidate.getFlags();
  if (!own.empty())
    command += " " + own;
  for (const CompileOption *option : flags.getGiven()) {
    std::string name = option->name;
    if (name == "microbatches" || name == "recompute" || name == "partition" ||
        name == "regather")
      continue;
    OptionValue value = getValue(*option, request.model.options);
    std::string argument = "--" + name;
    if (!std::holds_alternative<bool>(value))
      argument += "=" + toText(value);
    command += " " + quoteForShell(argument);
  }
  llvm::Expected<Trial> trial = Trial::make(request.model, candidate);
  if (!trial)
    return llvm::toString(trial.takeError());
  std::string why, text = trial->print(request.model, why);
  if (!why.empty())
    llvm::errs() << "shardc-advise: note: " << makePrintable(output)
                 << " is printed anew, without the model's comments and "
                    "names: "
                 << why << '\n';
  // The command of earlier advice.
  if (llvm::StringRef(text).starts_with("// shardc-compile "))
    text = llvm::StringRef(text).split('\n').second.str();
  return command + getLineEnding(text).str() + text;
}

int main(int argc, char **argv) {
  // A reader that goes away ends the tool as it ends others: SIGPIPE.
  llvm::InitLLVM initLLVM(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  ignoreSizeSignal();
  CompileOptionsFlags flags(category, getOtherOptions());
  if (std::optional<int> code =
          readArguments(argc, argv,
                        {"shardc-advise", SHARDC_VERSION,
                         "Ranks the ways to shard a model over devices\n",
                         /*mostInputs=*/1, category}))
    return *code;

  AdviceRequest request;
  std::vector<int64_t> numbers;
  if (std::string error = readFlags(flags, request, numbers); !error.empty())
    return fail(ExitCode::Usage, error);
  auto buffer = readModelFile(input);
  if (!buffer)
    return fail(ExitCode::InvalidInput, llvm::toString(buffer.takeError()));
  request.model.text = (*buffer)->getBuffer().str();
  request.model.name = (*buffer)->getBufferIdentifier().str();
  if (std::string error = checkIsSource(request.model.text); !error.empty())
    return fail(ExitCode::InvalidInput, request.model.name + ": " + error);
  if (std::string error = checkNesting(request.model.text, request.model.name);
      !error.empty()) {
    llvm::errs() << makePrintable(error);
    return static_cast<int>(ExitCode::InvalidInput);
  }
  std::string diagnostics;
  llvm::raw_string_ostream os(diagnostics);
  std::optional<ModelFacts> facts = readFacts(request.model, os);
  llvm::errs() << makePrintable(os.str());
  if (!facts)
    return static_cast<int>(ExitCode::InvalidInput);
  request.limits.hasStates = facts->stateBytes > 0;

  bool isTerminal = isatty(STDERR_FILENO);
  if (isTerminal)
    request.progress = showProgress;
  std::vector<Advice> advices;
  for (int64_t number : numbers) {
    request.limits.devices = number;
    advices.push_back(advise(request, *facts));
    if (advices.back().plans.empty())
      return fail(ExitCode::InvalidInput,
                  explainNoMesh(number, request.limits, facts->batchSize));
  }
  if (isTerminal)
    llvm::errs() << "\r\x1b[K";

  if (json) {
    llvm::json::Object object = numbers.size() == 1
                                    ? toJson(advices[0])
                                    : toJson(llvm::ArrayRef<Advice>(advices));
    llvm::outs() << llvm::formatv("{0:2}", llvm::json::Value(std::move(object)))
                 << '\n';
  } else {
    for (const Advice &advice : advices)
      if (numbers.size() == 1)
        print(advice, request.rows, llvm::outs());
    if (numbers.size() > 1)
      printScaling(advices, llvm::outs());
  }
  if (std::string message = finishOutput(llvm::outs(), "-"); !message.empty())
    return fail(ExitCode::Usage, message);
  if (llvm::none_of(advices, [](const Advice &advice) {
        return advice.getBest() != nullptr;
      }))
    return fail(ExitCode::OutOfMemory,
                "no plan fits: the sentences above say what would");
  if (output.empty())
    return 0;
  std::string message =
      writeFile(output, getAnnotated(request, advices[0], flags));
  return message.empty() ? 0 : fail(ExitCode::Usage, message);
}
