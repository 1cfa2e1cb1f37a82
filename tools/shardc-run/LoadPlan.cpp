//===- LoadPlan.cpp - The plan that a run executes ------------------------===//

#include "LoadPlan.h"

#include "CompileOnce.h"
#include "Report.h"

#include "shardc/Support/InputFiles.h"

#include "base/ReadFile.h"
#include "plan/CheckPipeline.h"
#include "plan/HappensBefore.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

using namespace shardc::run;
using namespace shardc::rt;

int shardc::run::readPipe(Arguments &arguments) {
  std::error_code error;
  std::filesystem::file_status status =
      std::filesystem::status(arguments.input, error);
  bool isStandardInput = arguments.input == "-";
  if (!isStandardInput &&
      (!exists(status) || is_regular_file(status) || is_directory(status)))
    return 0;
  if (std::string endless = shardc::checkInputEnds(arguments.input);
      !endless.empty())
    return report(2, endless);
  absl::StatusOr<std::string> content =
      readStream(isStandardInput ? "/dev/stdin" : arguments.input);
  if (!content.ok())
    return report(content.status());
  arguments.piped = *std::move(content);
  return 0;
}

/// By its name, or its first bytes.
bool shardc::run::isPlan(const Arguments &arguments) {
  if (absl::EndsWith(arguments.input, ".shardc"))
    return true;
  // The identifier of the schema comes after the offset of the root.
  char bytes[8] = {};
  if (arguments.piped)
    arguments.piped->copy(bytes, sizeof(bytes));
  else
    std::ifstream(arguments.input, std::ios::binary).read(bytes, sizeof(bytes));
  return absl::string_view(bytes + 4, 4) == "SHRD";
}

static CompileRequest requestFor(const Arguments &arguments,
                                 bool singleDevice) {
  CompileRequest request;
  request.path = arguments.input;
  request.source = arguments.piped;
  request.options = arguments.compile;
  request.options.singleDevice = singleDevice;
  // Of the partitioned program alone.
  if (singleDevice) {
    request.options.dumpDir.clear();
    request.options.verifyPartition = false;
  }
  return request;
}

int shardc::run::loadPlan(const Arguments &arguments, bool singleDevice,
                          std::shared_ptr<const Plan> &plan) {
  absl::StatusOr<std::shared_ptr<const Plan>> loaded;
  if (isPlan(arguments)) {
    loaded = arguments.piped ? Plan::parse(*arguments.piped)
                             : Plan::loadFile(arguments.input);
    if (!loaded.ok())
      return report(loaded.status());
  } else {
    CompileOutcome outcome =
        compileOnce(requestFor(arguments, singleDevice),
                    {arguments.noPlanCache, arguments.planCache});
    if ((!singleDevice || outcome.exitCode != 0) &&
        !outcome.diagnostics.empty() && mayPrint(outcome.diagnostics))
      std::cerr << (absl::StartsWith(outcome.diagnostics, "error: ")
                        ? "shardc-run: "
                        : "")
                << printable(outcome.diagnostics);
    if (outcome.exitCode != 0)
      return outcome.exitCode;
    loaded = Plan::parse(std::move(outcome.plan));
    // For a CPU that was asked for, which is not this one.
    if (absl::IsUnavailable(loaded.status()))
      return report(loaded.status());
    if (!loaded.ok())
      return report(70, absl::StrCat("the plan just compiled does not load: ",
                                     loaded.status().message()));
  }
  plan = *std::move(loaded);
  return 0;
}

/// "data=4,model=2" with its axes in order of name, to compare meshes.
static std::string sortedMesh(const std::string &mesh) {
  std::vector<std::string> axes;
  for (size_t begin = 0; begin <= mesh.size();) {
    size_t end = std::min(mesh.find(',', begin), mesh.size());
    axes.push_back(mesh.substr(begin, end - begin));
    begin = end + 1;
  }
  std::sort(axes.begin(), axes.end());
  std::string sorted;
  for (const std::string &axis : axes)
    sorted += axis + ",";
  return sorted;
}

/// The first flag that contradicts a plan that is already compiled, as an
/// error; empty: none.
static std::string contradiction(const Arguments &arguments, const Plan &plan) {
  auto compiledFor = [&](const std::string &flag, const auto &value) {
    return absl::StrCat(flag, " differs from ", arguments.input,
                        ", which is compiled for ", value,
                        "; compile the model again");
  };
  for (const shardc::CompileOption *option : arguments.given) {
    std::string flag = "--" + std::string(option->name);
    std::string given = shardc::toText(getValue(*option, arguments.compile));
    if (flag == "--mesh") {
      if (sortedMesh(given) != sortedMesh(plan.mesh()))
        return compiledFor(flag + "=" + given, plan.mesh());
    } else if (flag == "--batch-size") {
      if (arguments.compile.batchSize != plan.batchSize())
        return compiledFor(flag + "=" + given, plan.batchSize());
    } else {
      return absl::StrCat(flag, " is for models; ", arguments.input,
                          " is compiled");
    }
  }
  if (arguments.checkReference)
    return "--check-reference needs the model (.mlir): a plan does not hold "
           "the unpartitioned program";
  return "";
}

int shardc::run::checkAgainstPlan(const Arguments &arguments,
                                  const Plan &plan) {
  if (isPlan(arguments))
    if (std::string error = contradiction(arguments, plan); !error.empty())
      return report(1, error);
  if (arguments.numDevices && arguments.numDevices < plan.numDevices())
    return report(1, absl::StrCat("the mesh ", plan.mesh(), " needs ",
                                  plan.numDevices(),
                                  " devices, --num-devices gives ",
                                  arguments.numDevices));
  return 0;
}

/// The order of the ranks of a pipeline among each other.
static absl::Status printPipeline(const PlanSpec &plan, size_t number,
                                  bool asJson, nlohmann::ordered_json &json) {
  absl::StatusOr<PipelineOrder> order = orderPipeline(plan, number);
  if (!order.ok())
    return order.status();
  const std::string &name = plan.ranks()[0].programs[number].name;
  nlohmann::ordered_json of;
  of["name"] = name;
  of["ranks"] = plan.ranks().size();
  of["messages"] = order->messages;
  // On a CPU every message is copied by itself.
  std::string pairs;
  if (!plan.gpuTarget.empty()) {
    of["message_pairs"] = order->messagePairs;
    pairs = absl::StrCat(" (", order->messagePairs, " opposite pairs)");
  }
  of["collectives"] = order->jointCollectives;
  of["nodes"] = order->nodes;
  of["longest_chain"] = order->longestChain;
  of["bubble"] = order->bubble;
  json["pipelines"].push_back(of);
  if (!asJson)
    std::cout << absl::StrFormat(
        "%-16s joined: %d ranks, %d messages%s, %d collectives between them; "
        "%d nodes without a cycle, %d in the longest chain; bubble %.1f %% "
        "(estimated)\n",
        name, plan.ranks().size(), order->messages, pairs,
        order->jointCollectives, order->nodes, order->longestChain,
        100 * order->bubble);
  return absl::OkStatus();
}

/// The order of the program of one rank, or of all devices.
static absl::Status printProgram(const PlanSpec &plan, size_t number, int rank,
                                 bool asJson, nlohmann::ordered_json &json) {
  const PlanSpec &own = plan.ranks()[rank];
  const ProgramSpec &program = own.programs[number];
  absl::StatusOr<OrderReport> order = checkHappensBefore(own, program);
  if (!order.ok())
    return order.status();
  nlohmann::ordered_json of;
  of["name"] = program.name;
  if (plan.pipeline)
    of["rank"] = rank;
  std::string name =
      plan.pipeline ? absl::StrCat("  rank ", rank) : program.name;
  std::string line = absl::StrFormat("%-16s ordered: ", name);
  for (Stream stream :
       {Stream::Compute, Stream::Communication, Stream::Copies}) {
    int64_t commands = order->commands[static_cast<int>(stream)];
    of[std::string(toString(stream))] = commands;
    absl::StrAppend(&line, toString(stream), " ", commands, ", ");
  }
  of["events"] = order->events;
  of["concurrent_pairs"] = order->concurrentPairs;
  json["programs"].push_back(of);
  if (!asJson)
    std::cout << line << order->events << " events; of "
              << order->concurrentPairs
              << " pairs that may run at the same time none conflicts\n";
  return absl::OkStatus();
}

int shardc::run::printOrder(const Plan &plan, bool asJson) {
  nlohmann::ordered_json json;
  const PlanSpec &spec = plan.spec();
  for (size_t number = 0; number < spec.ranks()[0].programs.size(); ++number) {
    absl::Status status = spec.pipeline
                              ? printPipeline(spec, number, asJson, json)
                              : absl::OkStatus();
    for (int rank = 0; rank < static_cast<int>(spec.ranks().size()); ++rank)
      if (status.ok())
        status = printProgram(spec, number, rank, asJson, json);
    if (!status.ok())
      return report(status);
  }
  if (asJson)
    std::cout << json.dump(2) << "\n";
  return 0;
}
