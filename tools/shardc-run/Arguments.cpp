//===- Arguments.cpp - The command line of shardc-run ---------------------===//

#include "Arguments.h"

#include "absl/strings/numbers.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>

using namespace shardc::run;

/// Levenshtein's distance.
static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

/// The flag of `app` that is nearest to `name`, with its dashes.
static std::string nearestFlag(const CLI::App &app, const std::string &name) {
  std::string best;
  size_t bestDistance = SIZE_MAX;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &candidate : option->get_lnames()) {
      size_t distance = editDistance(name, candidate);
      if (distance < bestDistance) {
        bestDistance = distance;
        best = candidate;
      }
    }
  return "--" + best;
}

/// What an unknown argument is called, without dashes and value.
static std::string bareName(const std::string &argument) {
  size_t begin = argument.find_first_not_of('-');
  if (begin == std::string::npos)
    return argument;
  return argument.substr(begin, argument.find('=') - begin);
}

/// A finite number that `holds`. (CLI11's own checks take "nan", and write
/// their bounds in 300 digits.)
static CLI::Validator number(const std::string &name,
                             const std::string &expected,
                             bool (*holds)(double)) {
  auto check = [=](const std::string &text) {
    double value;
    bool isGood =
        absl::SimpleAtod(text, &value) && std::isfinite(value) && holds(value);
    return isGood ? std::string() : "'" + text + "' is not " + expected;
  };
  return CLI::Validator(check, name);
}

std::optional<Arguments> shardc::run::parseArguments(int argc, char **argv,
                                                     int &exitCode) {
  Arguments arguments;
  CLI::App app(
      "Trains a model: executes the train steps of a plan (.shardc) or "
      "of a model (.mlir), which it compiles first.",
      "shardc-run");
  const CLI::Validator positive = number(
      "POSITIVE", "a number above 0", [](double value) { return value > 0; });
  const CLI::Validator nonNegative =
      number("NONNEGATIVE", "a number from 0 on",
             [](double value) { return value >= 0; });
  // What means nothing on CPUs.
  const std::string onGpus = "Of --device=cuda alone";
  app.add_option("model", arguments.input, "A plan or a model file");
  app.add_option("--mesh", arguments.mesh,
                 "Mesh axis sizes, such as data=4,model=2");
  app.add_option("--rules", arguments.rules,
                 "Rules for logical axes, such as batch=data,hidden=model");
  app.add_option("--target", arguments.target,
                 "What to compile a model for: cpu, cuda:sm_90 or "
                 "another GPU; default: what --device is");
  app.add_option("--dtype", arguments.dtype,
                 "What a model of f32 computes in: f32 or bf16");
  app.add_option("--matmul-precision", arguments.matmulPrecision,
                 "What factors of large products of a model's f32 may be "
                 "rounded to: highest, tf32 or bf16");
  app.add_option("--machine", arguments.machine,
                 "Machine that times of a model are estimated for: a JSON file "
                 "or a name");
  app.add_option("--shardc-dump-dir", arguments.dumpDir,
                 "Write a model's IR after each phase into this directory");
  app.add_flag("--ignore-expect", arguments.ignoreExpectations,
               "Do not check the contracts of a model (shardc.expect)");
  app.add_option("--partition", arguments.partition,
                 "How to shard what is not annotated: follow or cheapest")
      ->type_name("MODE");
  app.add_option("--objective", arguments.objective,
                 "What --partition=cheapest minimises: time or bytes")
      ->type_name("OBJECTIVE");
  app.add_option("--device-memory", arguments.deviceMemory,
                 "Most bytes that the plan of a model may need on a device "
                 "(0: no limit)")
      ->type_name("BYTES")
      ->check(nonNegative);
  app.add_flag(
      "--regather", arguments.regather,
      "Gather a model's weights again for the backward pass instead of "
      "holding them: less memory, more bytes");
  app.add_flag("--verify-partition", arguments.verifyPartition,
               "Compare a model's partitioned program with the global one in a "
               "reference interpreter");
  CLI::Option *planCache =
      app.add_option("--plan-cache", arguments.planCache,
                     "Where plans of models are kept for the next run; "
                     "default: shardc in the user's cache")
          ->type_name("DIR");
  app.add_flag("--no-plan-cache", arguments.noPlanCache,
               "Compile a model and keep nothing")
      ->excludes(planCache);
  app.add_option("--device", arguments.device, "Kind of device: cpu or cuda")
      ->capture_default_str();
  app.add_option("--num-devices", arguments.numDevices,
                 "Virtual devices available; default: as many as the mesh has")
      ->check(positive);
  app.add_option("--gpu", arguments.gpu,
                 "The first GPU of this process, by the driver's numbers; "
                 "default: the first, or that of its local rank")
      ->check(nonNegative)
      ->group(onGpus);
  app.add_option("--gpus", arguments.gpus,
                 "GPUs of one process: 1 for all devices of the mesh, or one "
                 "for each; default: one for each if there are as many")
      ->check(positive)
      ->group(onGpus);
  app.add_option("--tune-products", arguments.tuneProducts,
                 "Time the algorithms of library products that this file does "
                 "not know yet, and keep the fastest in it")
      ->type_name("FILE")
      ->group(onGpus);
  app.add_option("--deadline", arguments.deadline,
                 "Longest wait for a step, or for other processes, in seconds")
      ->check(positive)
      ->capture_default_str()
      ->group(onGpus);
  app.add_flag("--serialize", arguments.serialize,
               "Wait for every command, so that an error names the one it "
               "happened in")
      ->group(onGpus);
  app.add_option("--threads", arguments.threads,
                 "Worker threads; default: as many as cores")
      ->check(CLI::Range(1, 1024));
  app.add_option("--data", arguments.data,
                 "FILE.npz, synthetic:quadratic, digits, digits:train or "
                 "digits:test");
  app.add_option("--eval-data", arguments.evalData,
                 "Data to evaluate on at the end");
  app.add_option("--batch-size", arguments.batchSize, "Global batch size")
      ->check(positive);
  app.add_option("--microbatches", arguments.microbatches,
                 "Take a model's batch in so many parts, one after the other")
      ->check(positive);
  app.add_option("--bucket-bytes", arguments.bucketBytes,
                 "Most bytes of collectives merged into one when a model is "
                 "compiled; 0: no limit")
      ->check(nonNegative);
  app.add_option("--steps", arguments.steps, "Stop after this many steps")
      ->check(positive);
  app.add_option("--epochs", arguments.epochs, "Stop after this many epochs")
      ->check(positive);
  app.add_option("--seed", arguments.seed,
                 "Of initial values, dropout and the order of the data")
      ->capture_default_str();
  app.add_flag("--no-shuffle", arguments.noShuffle,
               "Keep the order of the data");
  app.add_option("--load-params", arguments.loadParams,
                 "Start from the parameters in FILE.npz");
  app.add_option("--save-params", arguments.saveParams,
                 "Write the final parameters to FILE.npz");
  app.add_option("--metrics", arguments.metrics,
                 "Write one JSON object per step to this file");
  app.add_option("--log-every", arguments.logEvery,
                 "Steps between lines where there is no terminal; 0: none")
      ->check(nonNegative)
      ->capture_default_str();
  app.add_flag("--check-reference", arguments.checkReference,
               "Run the unpartitioned program beside it and compare");
  app.add_option("--tolerance", arguments.tolerance,
                 "Relative difference that --check-reference allows; default: "
                 "derived from the reduction lengths")
      ->check(positive);
  app.add_flag("--check-plan", arguments.checkPlan,
               "Print how the plan orders its commands and stop; also without "
               "the devices it is for");
  app.add_flag("--no-alias-replicas", arguments.noAliasReplicas,
               "Virtual CPU devices that hold the same bits do not share them");
  app.add_option(
      "--cpu-target", arguments.cpuTarget,
      "Run the plan's code for this CPU, such as x86-64-v3; default: "
      "for the most that this one has");
  app.add_flag("--dry-run", arguments.dryRun,
               "Print what the plan needs and stop");
  app.add_flag("--list-devices", arguments.listDevices,
               "Print the devices and stop");
  app.add_flag("--json", arguments.json,
               "Print the summary as one JSON object on standard output");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    exitCode = app.exit(help);
    return std::nullopt;
  } catch (const CLI::ExtrasError &) {
    for (const std::string &extra : app.remaining())
      if (extra.rfind("-", 0) == 0)
        std::cerr << "shardc-run: unknown flag " << extra << "; did you mean "
                  << nearestFlag(app, bareName(extra)) << "?\n";
      else
        std::cerr << "shardc-run: one model or plan expected, also got '"
                  << extra << "'\n";
    exitCode = 1;
    return std::nullopt;
  } catch (const CLI::ParseError &error) {
    std::cerr << "shardc-run: " << error.what() << "\n";
    exitCode = 1;
    return std::nullopt;
  }
  if (arguments.input.empty() && !arguments.listDevices) {
    std::cerr << "shardc-run: no model given: expected a plan (.shardc) or a "
                 "model (.mlir)\n";
    exitCode = 1;
    return std::nullopt;
  }
  for (const CLI::Option *option : app.get_options())
    if (arguments.device == "cpu" && option->count() &&
        option->get_group() == onGpus) {
      std::cerr << "shardc-run: " << option->get_name()
                << " is for GPUs; expected --device=cuda beside it\n";
      exitCode = 1;
      return std::nullopt;
    }
  if (arguments.device == "cuda" && !arguments.cpuTarget.empty()) {
    std::cerr << "shardc-run: --cpu-target is for --device=cpu\n";
    exitCode = 1;
    return std::nullopt;
  }
  return arguments;
}
