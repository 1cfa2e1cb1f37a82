//===- Arguments.cpp - The command line of shardc-run ---------------------===//

#include "Arguments.h"

#include "Report.h"

#include "shardc/Support/Help.h"
#include "shardc/Support/Suggest.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <set>

using namespace shardc::run;

/// ", did you mean" the flag of `app` that `name` is at most two edits from;
/// else where to find all of them.
static std::string suggestFlag(const CLI::App &app, const std::string &name) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &candidate : option->get_lnames())
      names.push_back(candidate);
  std::string nearest = shardc::findNearest(name, names);
  return nearest.empty() ? "; shardc-run --help lists all flags"
                         : "; did you mean --" + nearest + "?";
}

/// Flags by the names that they had before, which stay for one release.
static const std::map<std::string, std::string> renamedFlags = {
    {"--tune-products", "--tune-gemms"}};

/// Brings a command line into the form "--flag", "--flag=value" and at most one
/// argument without dashes, each flag once and with a value iff it takes one.
/// CLI11 then finds no error, and all messages are shardc's. Returns the first
/// error, or "".
static std::string normalise(const CLI::App &app,
                             const std::vector<std::string> &given,
                             std::vector<std::string> &normal) {
  std::set<std::string> seen;
  bool hasModel = false;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string &argument = given[i];
    size_t dashes = argument.find_first_not_of('-');
    if (argument == "-" || dashes == 0 || argument.empty()) {
      if (hasModel || argument.empty())
        return "one model or plan expected, also got '" + argument + "'";
      hasModel = true;
      normal.push_back(argument);
      continue;
    }
    if (argument == "-h") {
      normal.push_back(argument);
      continue;
    }
    size_t equals = argument.find('=');
    std::string flag = argument.substr(0, equals);
    if (auto renamed = renamedFlags.find(flag); renamed != renamedFlags.end())
      flag = renamed->second;
    const CLI::Option *option =
        dashes == 2 ? app.get_option_no_throw(flag) : nullptr;
    if (!option)
      return "unknown flag " + flag +
             suggestFlag(app,
                         dashes < flag.size() ? flag.substr(dashes) : flag);
    if (!seen.insert(flag).second)
      return flag + " is given twice";
    bool takesValue = option->get_expected_max() > 0;
    bool needsValue = option->get_expected_min() > 0;
    if (!takesValue && equals != std::string::npos)
      return flag + " takes no value, found '" + argument.substr(equals + 1) +
             "'";
    if (needsValue && equals == std::string::npos && i + 1 < given.size() &&
        given[i + 1].rfind("--", 0) != 0)
      normal.push_back(flag + "=" + given[++i]);
    else if (equals == std::string::npos)
      // CLI11 would take the next argument for a value.
      normal.push_back(takesValue && !needsValue
                           ? flag + "=" + option->get_default_str()
                           : flag);
    else
      normal.push_back(flag + argument.substr(equals));
    if ((needsValue || equals != std::string::npos) && takesValue &&
        normal.back().size() <= flag.size() + 1)
      return flag + ": expected a value, found none";
  }
  return "";
}

namespace {
/// The flags of shardc-run. CLI11 keeps them and writes the help; values are
/// read here, whole or not at all.
class Flags {
public:
  explicit Flags(CLI::App &app) : app(app) {}

  /// A text; `standard` describes its default in the help.
  void text(const std::string &flag, const std::string &type,
            const std::string &standard, std::string &value,
            const std::string &help) {
    app.add_option("--" + flag, value, describe(help, standard))
        ->type_name(type)
        ->group(group);
  }

  /// An integer of at least `least` and at most `most`.
  template <typename T>
  void integer(const std::string &flag, const std::string &type,
               const std::string &standard, T &value, const std::string &help,
               T least, T most = std::numeric_limits<T>::max()) {
    auto read = [=, &value](const std::string &text) {
      T number;
      if (absl::SimpleAtoi(text, &number) && number >= least &&
          number <= most) {
        value = number;
        return;
      }
      bool isBounded = most < std::numeric_limits<T>::max();
      // Too many digits for T, or not an integer.
      bool isTooLarge = text.find_first_not_of("0123456789") == text.npos;
      throw CLI::ValidationError(
          "--" + flag, "'" + text + "' is not an integer " +
                           (isBounded ? "from " + std::to_string(least) +
                                            " to " + std::to_string(most)
                            : isTooLarge && !absl::SimpleAtoi(text, &number)
                                ? "of at most " + std::to_string(most)
                                : "of at least " + std::to_string(least)));
    };
    app.add_option_function<std::string>("--" + flag, read,
                                         describe(help, standard))
        ->type_name(type)
        ->group(group);
  }

  /// A finite number above 0.
  void positive(const std::string &flag, const std::string &type,
                const std::string &standard, double &value,
                const std::string &help) {
    auto read = [=, &value](const std::string &text) {
      double number;
      if (!absl::SimpleAtod(text, &number) || !std::isfinite(number) ||
          number <= 0)
        throw CLI::ValidationError("--" + flag,
                                   "'" + text + "' is not a number above 0");
      value = number;
    };
    app.add_option_function<std::string>("--" + flag, read,
                                         describe(help, standard))
        ->type_name(type)
        ->group(group);
  }

  /// A time above 0: seconds, or with a unit, as 200ms.
  void duration(const std::string &flag, const std::string &standard,
                absl::Duration &value, const std::string &help) {
    auto read = [=, &value](const std::string &text) {
      double seconds;
      absl::Duration given = absl::ZeroDuration();
      if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds))
        given = absl::Seconds(seconds);
      else if (!absl::ParseDuration(text, &given))
        given = absl::ZeroDuration();
      if (given < absl::Milliseconds(1) || given > absl::Hours(24 * 365))
        throw CLI::ValidationError("--" + flag,
                                   "'" + text +
                                       "' is not a time from 1ms to a year: "
                                       "seconds, as 300, or with a unit, as "
                                       "200ms or 5m");
      value = given;
    };
    app.add_option_function<std::string>("--" + flag, read,
                                         describe(help, standard))
        ->type_name("SECONDS|TIME")
        ->group(group);
  }

  /// Steps, or seconds with an "s" behind them.
  void interval(const std::string &flag, int64_t &steps, double &seconds,
                const std::string &standard, const std::string &help) {
    auto read = [=, &steps, &seconds](const std::string &text) {
      bool isTime = !text.empty() && text.back() == 's';
      if (isTime
              ? absl::SimpleAtod(text.substr(0, text.size() - 1), &seconds) &&
                    std::isfinite(seconds) && seconds > 0
              : absl::SimpleAtoi(text, &steps) && steps > 0)
        return;
      throw CLI::ValidationError("--" + flag,
                                 "'" + text +
                                     "' is neither a number of steps, as 100, "
                                     "nor of seconds, as 30s");
    };
    app.add_option_function<std::string>("--" + flag, read,
                                         describe(help, standard))
        ->type_name("STEPS|SECONDSs")
        ->group(group);
  }

  /// Two numbers of at least 1, the second one not below the first: FIRST:LAST.
  void range(const std::string &flag, const std::string &standard,
             int64_t &first, int64_t &last, const std::string &help) {
    auto read = [=, &first, &last](const std::string &text) {
      size_t colon = text.find(':');
      if (colon == std::string::npos ||
          !absl::SimpleAtoi(text.substr(0, colon), &first) ||
          !absl::SimpleAtoi(text.substr(colon + 1), &last) || first < 1 ||
          last < first)
        throw CLI::ValidationError("--" + flag,
                                   "'" + text +
                                       "' is not a range of steps from 1 on, "
                                       "as 10:12");
    };
    app.add_option_function<std::string>("--" + flag, read,
                                         describe(help, standard))
        ->type_name("FIRST:LAST")
        ->group(group);
  }

  /// One of `words` or an integer of at least 0; `words[0]` without a value.
  void wordOrInteger(const std::string &flag, const std::string &type,
                     const std::vector<std::string> &words, std::string &value,
                     const std::string &help) {
    auto read = [=, &value](const std::string &text) {
      int64_t number;
      if (absl::SimpleAtoi(text, &number) && number >= 0) {
        value = std::to_string(number);
        return;
      }
      if (std::find(words.begin(), words.end(), text) == words.end())
        throw CLI::ValidationError("--" + flag,
                                   "'" + text + "' is not " + type);
      value = text;
    };
    app.add_option_function<std::string>("--" + flag, read, help)
        ->expected(0, 1)
        ->default_str(words[0])
        ->type_name(type)
        ->group(group);
  }

  void flag(const std::string &flag, bool &value, const std::string &help) {
    app.add_flag("--" + flag, value, help)->group(group);
  }

  /// The flag of a compile option, whose values its table reads.
  void compileOption(const shardc::CompileOption &option,
                     Arguments &arguments) {
    std::string name = "--" + std::string(option.name);
    std::string help = describe(option.help, describeDefault(option));
    auto read = [=, &option, &arguments](const std::string &text) {
      std::string error = setOption(option, text, arguments.compile);
      if (!error.empty())
        throw CLI::ValidationError(error);
      arguments.given.push_back(&option);
    };
    if (std::holds_alternative<bool shardc::CompileOptions::*>(option.member))
      app.add_flag_callback(
             name, [=] { read("1"); }, help)
          ->group(group);
    else
      app.add_option_function<std::string>(name, read, help)
          ->type_name(toType(option.value))
          ->group(group);
  }

  /// Of the flags that follow.
  std::string group;

private:
  /// A placeholder in capitals; an example as it is.
  static std::string toType(std::string value) {
    if (value.find_first_of("=|") == value.npos)
      for (char &letter : value)
        letter = std::toupper(static_cast<unsigned char>(letter));
    return value;
  }

  static std::string describe(const std::string &help,
                              const std::string &standard) {
    return standard.empty() ? help : help + " (default: " + standard + ")";
  }

  CLI::App &app;
};
} // namespace

// Groups of the help.
static const char ofData[] = "Data and training";
static const char ofCheckpoints[] = "Checkpoints";
static const char ofOutputs[] = "Outputs";
static const char ofChecks[] = "Checks";
static const char ofDevices[] = "Devices";
static const char ofGpus[] = "Only with --device=cuda";
static const char ofModels[] = "Only for models, which are compiled first";

static void addRunFlags(Flags &flags, Arguments &arguments) {
  flags.group = ofData;
  flags.text("data", "DATA", "", arguments.data,
             "FILE.npz, synthetic:quadratic, digits, digits:train or "
             "digits:test");
  flags.text("eval-data", "DATA", "digits:test with digits, else none",
             arguments.evalData, "Data to evaluate on at the end");
  flags.integer<int64_t>("eval-every", "EPOCHS", "only at the end",
                         arguments.evalEvery,
                         "Also evaluate each time after this many epochs", 1);
  flags.flag("evaluate-only", arguments.evaluateOnly,
             "Evaluate and stop: no training");
  flags.text("predict", "FILE", "", arguments.predict,
             "Write predictions for --data to a file .npz, .npy or "
             ".safetensors and stop: no training");
  flags.integer<int64_t>("steps", "STEPS", "as --epochs says", arguments.steps,
                         "Stop after this many steps", 1);
  flags.integer<int64_t>("epochs", "EPOCHS", "1, or as --steps says",
                         arguments.epochs, "Stop after this many epochs", 1);
  flags.integer<uint64_t>("seed", "SEED", "0", arguments.seed,
                          "Seed of initial values, dropout and the order of "
                          "the data",
                          0);
  flags.flag("no-shuffle", arguments.noShuffle, "Keep the order of the data");
  flags.text("load-params", "FILE", "initial values", arguments.loadParams,
             "Start from these parameters, of a file .npz or .safetensors");

  flags.group = ofCheckpoints;
  flags.text("checkpoint-dir", "DIR", "", arguments.checkpointDir,
             "Write checkpoints into this folder, one at the end");
  flags.interval("checkpoint-every", arguments.checkpointSteps,
                 arguments.checkpointSeconds, "only at the end",
                 "Also write one each time after this many steps or seconds");
  flags.integer<int64_t>("keep", "CHECKPOINTS", "all", arguments.keep,
                         "Keep this many, the latest", 1);
  flags.wordOrInteger("resume", "latest|if-any|STEP", {"latest", "if-any"},
                      arguments.resume,
                      "Go on from the latest checkpoint, or from that of this "
                      "step; if-any: begin anew if there is none");

  flags.group = ofOutputs;
  flags.text("save-params", "FILE", "", arguments.saveParams,
             "Write the final parameters to a file .npz or .safetensors");
  flags.text("metrics", "FILE", "", arguments.metrics,
             "Write one JSON object per step");
  flags.text("trace", "FILE", "", arguments.trace,
             "Write what ran when, for Perfetto or chrome://tracing; "
             "compressed if it ends in .gz");
  flags.flag("profile", arguments.profile,
             "Print where the time of a step goes, command by command");
  flags.range("trace-steps", "2:11", arguments.traceFirst, arguments.traceLast,
              "The steps that --trace and --profile record");
  flags.integer<int64_t>("log-every", "STEPS", "100", arguments.logEvery,
                         "Steps between lines where there is no terminal; 0: "
                         "none",
                         0);
  flags.flag("json", arguments.json,
             "Print the summary, and nothing else, as one JSON object on "
             "standard output");
  flags.flag("dry-run", arguments.dryRun,
             "Print the requirements of the plan and stop");
  flags.flag("list-devices", arguments.listDevices,
             "Print the devices and stop");
  flags.text(
      "measure-machine", "FILE", "", arguments.measureMachine,
      "Measure this computer, with --device=cuda a GPU, write a file for "
      "--machine and stop");

  flags.group = ofChecks;
  flags.flag("check-reference", arguments.checkReference,
             "Also run the unpartitioned program, and compare");
  flags.positive("tolerance", "NUMBER", "follows from the run",
                 arguments.tolerance,
                 "Relative difference that --check-reference allows");
  flags.flag(
      "check-plan", arguments.checkPlan,
      "Prove and print the order of the plan's commands and stop; needs no "
      "devices");

  flags.group = ofDevices;
  flags.text("device", "KIND", "cpu", arguments.device,
             "Kind of device: cpu or cuda");
  flags.integer<int64_t>("num-devices", "DEVICES", "as many as the mesh has",
                         arguments.numDevices, "Virtual devices available", 1);
  flags.integer<int>("threads", "THREADS", "as many as usable CPUs",
                     arguments.threads, "Worker threads", 1, 1024);
  flags.text("cpu-target", "NAME", "the most that this CPU has",
             arguments.cpuTarget,
             "Compile for this CPU, or run the plan's code for it: x86-64-v3 "
             "or x86-64-v4");
  flags.flag("no-alias-replicas", arguments.noAliasReplicas,
             "Do not share memory among virtual CPU devices that hold the same "
             "bits");

  flags.flag("ordered-sums", arguments.orderedSums,
             "Add sums over virtual CPU devices in a fixed order, as several "
             "processes do: the same bits for any number of processes");

  flags.duration("deadline", "300", arguments.deadline,
                 "Longest wait for a step, a checkpoint or other processes");
  flags.duration("heartbeat", "5", arguments.heartbeat,
                 "With several processes: time between signs of life; one that "
                 "has gone is known after two");

  flags.group = ofGpus;
  flags.integer<int>(
      "gpu", "NUMBER", "the first, or that of the local rank", arguments.gpu,
      "The first GPU of this process, by the driver's numbers", 0);
  flags.integer<int>("gpus", "GPUS", "one for each device if there are as many",
                     arguments.gpus,
                     "GPUs of one process: 1 for all devices of the mesh, or "
                     "one for each",
                     1);
  flags.text(
      "tune-gemms", "FILE", "", arguments.tuneGemms,
      "Time the algorithms of library GEMMs that this file does not list "
      "yet, and keep the fastest in it");
  flags.flag("serialize", arguments.serialize,
             "Wait for every command, so that an error names its command");
}

static void addModelFlags(Flags &flags, Arguments &arguments) {
  flags.group = ofModels;
  for (const shardc::CompileOption &option : shardc::getCompileOptions())
    flags.compileOption(option, arguments);
  flags.text("plan-cache", "DIR", "shardc in the user's cache",
             arguments.planCache, "Folder that keeps plans for the next run");
  flags.flag("no-plan-cache", arguments.noPlanCache, "Keep no plan");
}

bool Arguments::isGiven(const std::string &name) const {
  return std::any_of(given.begin(), given.end(),
                     [&](const auto *option) { return option->name == name; });
}

/// The first reason why --predict cannot be done; empty: none.
static std::string findNoPrediction(const Arguments &arguments) {
  std::string flag = "--predict=" + arguments.predict;
  if (arguments.evaluateOnly)
    return "--predict and --evaluate-only contradict each other";
  if (!arguments.evalData.empty())
    return "--eval-data is for an evaluation; --predict takes --data";
  if (!absl::EndsWith(arguments.predict, ".npz") &&
      !absl::EndsWith(arguments.predict, ".npy") &&
      !absl::EndsWith(arguments.predict, ".safetensors"))
    return flag + ": expected a file .npz, .npy or .safetensors";
  if (arguments.loadParams.empty() && arguments.checkpointDir.empty())
    return "no parameters to predict with: expected --resume and "
           "--checkpoint-dir=DIR, or --load-params=FILE";
  if (arguments.resume == "if-any")
    return "--resume=if-any may find no parameters to predict with: expected "
           "--resume";
  return "";
}

/// The first contradiction between flags; empty: none.
static std::string findContradiction(const CLI::App &app,
                                     const Arguments &arguments) {
  auto isGiven = [&](const std::string &flag) {
    return app.get_option(flag)->count() > 0;
  };
  const bool measures = !arguments.measureMachine.empty();
  if (measures && !arguments.input.empty())
    return "--measure-machine takes no model: found " + arguments.input;
  if (measures && !arguments.cpuTarget.empty())
    return "--measure-machine measures the most that this CPU has, and takes "
           "no --cpu-target";
  if (arguments.input.empty() && !arguments.listDevices && !measures)
    return "no model given: expected a plan (.shardc) or a model (.mlir)";
  if (arguments.noPlanCache && !arguments.planCache.empty())
    return "--plan-cache and --no-plan-cache contradict each other";
  for (const CLI::Option *option : app.get_options())
    if (arguments.device == "cpu" && option->count() &&
        option->get_group() == ofGpus)
      return option->get_name() +
             " is for GPUs; expected --device=cuda beside it";
  if (arguments.device == "cuda" && !arguments.cpuTarget.empty())
    return "--cpu-target is for --device=cpu";
  const char *purpose =
      arguments.evaluateOnly ? "--evaluate-only" : "--predict";
  if (!arguments.isTraining())
    for (const char *flag :
         {"--steps", "--epochs", "--eval-every", "--no-shuffle",
          "--save-params", "--metrics", "--trace", "--profile", "--log-every",
          "--check-reference", "--checkpoint-every", "--keep"})
      if (isGiven(flag))
        return std::string(flag) + " is for training; " + purpose +
               " does none";
  if (absl::EndsWith(arguments.saveParams, ".npy"))
    return "--save-params=" + arguments.saveParams +
           ": a file .npy holds one array; expected .npz or .safetensors";
  if (!arguments.saveParams.empty() &&
      !absl::EndsWith(arguments.saveParams, ".npz") &&
      !absl::EndsWith(arguments.saveParams, ".safetensors"))
    return "--save-params=" + arguments.saveParams +
           ": expected a file .npz or .safetensors";
  if (!arguments.predict.empty())
    if (std::string error = findNoPrediction(arguments); !error.empty())
      return error;
  if (arguments.checkpointDir.empty())
    for (const char *flag : {"--checkpoint-every", "--keep", "--resume"})
      if (isGiven(flag))
        return std::string(flag) + " needs --checkpoint-dir=DIR";
  if (!arguments.isTraining() && !arguments.checkpointDir.empty() &&
      arguments.resume.empty())
    return std::string(purpose) +
           " reads a checkpoint with --resume, and writes none";
  if (isGiven("--trace-steps") && arguments.trace.empty() && !arguments.profile)
    return "--trace-steps needs --trace=FILE or --profile";
  if (!arguments.resume.empty() && !arguments.loadParams.empty())
    return "--resume and --load-params contradict each other: a checkpoint has "
           "the parameters";
  if (arguments.heartbeat > arguments.deadline)
    return "--heartbeat is longer than --deadline: processes that have gone "
           "would not be known before";
  return "";
}

std::optional<Arguments> shardc::run::parseArguments(int argc, char **argv,
                                                     int &exitCode) {
  Arguments arguments;
  CLI::App app(
      "Trains a model: executes the train steps of a plan (.shardc) or "
      "of a model (.mlir), which it compiles first.",
      "shardc-run");
  app.set_version_flag("--version", "shardc " SHARDC_VERSION,
                       "Print the version and stop");
  app.add_option("model", arguments.input, "A plan or a model file")
      ->type_name("FILE");
  Flags flags(app);
  addRunFlags(flags, arguments);
  addModelFlags(flags, arguments);

  std::vector<std::string> normal;
  std::string error =
      normalise(app, std::vector<std::string>(argv + 1, argv + argc), normal);
  if (error.empty())
    try {
      for (const std::string &argument : normal)
        if (argument.rfind("--", 0) == 0)
          arguments.flags.push_back(argument);
      // CLI11 takes the last one first.
      std::reverse(normal.begin(), normal.end());
      app.parse(normal);
      if (app.get_option("--heartbeat")->count() == 0)
        arguments.heartbeat = std::min(arguments.heartbeat, arguments.deadline);
      arguments.isSeedGiven = app.get_option("--seed")->count() > 0;
      error = findContradiction(app, arguments);
    } catch (const CLI::CallForHelp &) {
      std::cout << shardc::layOutHelp(app.help());
      return std::nullopt;
    } catch (const CLI::Success &version) {
      exitCode = app.exit(version);
      return std::nullopt;
    } catch (const CLI::ParseError &mistake) {
      error = mistake.what();
    }
  if (error.empty())
    return arguments;
  exitCode = report(1, error);
  return std::nullopt;
}
