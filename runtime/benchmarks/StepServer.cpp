//===- StepServer.cpp - Times train steps on request ----------------------===//
//
//   shardc-bench-steps [--cpu-target=NAME] [WORKERS]
//
// The process that benchmarks/goals talks to. It takes turns between this
// process and its peers, so that all see the same load on a shared computer;
// therefore everything stays loaded and runs when asked. One request per line:
//
//   plan NAME FILE           loads a plan
//   gemms NAME BATCH SIZES   prepares the GEMMs of layers SIZES (a,b,c)
//   run NAME STEPS           runs so many steps (or sums of GEMMs)
//   epoch NAME DATADIR       reads them, runs one epoch of them and evaluates
//   epoch NAME               the same without reading them again
//   memory NAME              states bytes
//
// Each is answered by one line, a JSON object: "seconds" of what ran, and
// "error" if something failed.
//
// Of several processes that mpirun has started each has some devices of every
// plan. Rank 0 reads the requests, tells them to the others, which do not use
// their cores while they wait, and answers.
//
//===----------------------------------------------------------------------===//

#include "GemmSum.h"
#include "PlanRunner.h"

#include "base/UsableCpus.h"
#include "plan/PlanSpec.h"
#include "shardc-rt/Processes.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace shardc::rt;
using namespace shardc::rt::bench;

namespace {

class Server {
public:
  /// `processes` is null if there is one.
  Server(Context &context, Processes *processes, std::string cpuTarget)
      : context(context), processes(processes),
        cpuTarget(std::move(cpuTarget)) {}

  nlohmann::json answer(const std::string &line);

private:
  absl::Status load(const std::vector<std::string> &words);
  absl::StatusOr<int64_t> run(const std::vector<std::string> &words);
  nlohmann::json describeMemory(const PlanRunner &plan) const;

  Context &context;
  Processes *processes;
  const std::string cpuTarget;
  std::map<std::string, std::unique_ptr<PlanRunner>> plans;
  std::map<std::string, std::unique_ptr<GemmSum>> gemms;
};

} // namespace

absl::Status Server::load(const std::vector<std::string> &words) {
  if (words[0] == "plan" && words.size() == 3) {
    auto plan = PlanRunner::create(context, processes, words[2], cpuTarget);
    if (!plan.ok())
      return plan.status();
    plans[words[1]] = *std::move(plan);
    return absl::OkStatus();
  }
  int64_t batch;
  if (words.size() != 4 || !absl::SimpleAtoi(words[2], &batch))
    return absl::InvalidArgumentError("not understood");
  std::vector<int64_t> layers;
  for (absl::string_view size : absl::StrSplit(words[3], ','))
    if (!absl::SimpleAtoi(size, &layers.emplace_back()))
      return absl::InvalidArgumentError("not a number");
  auto sum = GemmSum::create(batch, layers);
  if (!sum.ok())
    return sum.status();
  gemms[words[1]] = *std::move(sum);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Server::run(const std::vector<std::string> &words) {
  if (words.size() < 2)
    return absl::InvalidArgumentError("not understood");
  auto plan = plans.find(words[1]);
  if (words[0] == "epoch" && plan != plans.end()) {
    if (words.size() == 3)
      if (absl::Status status = plan->second->readDigits(words[2]);
          !status.ok())
        return status;
    return plan->second->runEpoch();
  }
  int64_t steps;
  if (words.size() != 3)
    return absl::InvalidArgumentError("not understood");
  if (!absl::SimpleAtoi(words[2], &steps))
    return absl::InvalidArgumentError("not a number");
  if (plan != plans.end()) {
    if (absl::Status status = plan->second->run(steps); !status.ok())
      return status;
    return steps;
  }
  auto sum = gemms.find(words[1]);
  if (sum == gemms.end())
    return absl::NotFoundError(absl::StrCat("nothing is called ", words[1]));
  for (int64_t step = 0; step < steps; ++step)
    if (absl::Status status = sum->second->run(); !status.ok())
      return status;
  return steps;
}

nlohmann::json Server::describeMemory(const PlanRunner &runner) const {
  const PlanSpec &plan = runner.get().plan().spec();
  uint64_t persistent = 0;
  for (const TensorSpec &tensor : plan.tensors)
    if (tensor.role == Role::Parameter || tensor.role == Role::State)
      persistent += tensor.bytes;
  return {{"persistent_bytes", persistent},
          {"reported_bytes", runner.get().allocatedBytes()},
          {"grown_bytes", runner.grownBytes()}};
}

nlohmann::json Server::answer(const std::string &line) {
  std::vector<std::string> words = absl::StrSplit(line, ' ');
  absl::Status status;
  if (words[0] == "plan" || words[0] == "gemms") {
    status = load(words);
  } else if (words[0] == "run" || words[0] == "epoch") {
    auto start = std::chrono::steady_clock::now();
    absl::StatusOr<int64_t> steps = run(words);
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    if (steps.ok())
      return {{"seconds", time.count()}, {"steps", *steps}};
    status = steps.status();
  } else if (auto plan = plans.find(words.back());
             words[0] == "memory" && plan != plans.end()) {
    return describeMemory(*plan->second);
  } else {
    status = absl::InvalidArgumentError("not understood");
  }
  if (status.ok())
    return nlohmann::json::object();
  return {{"error", absl::StrCat(line, ": ", std::string(status.message()))}};
}

/// Null if there is one process.
static absl::StatusOr<std::unique_ptr<Processes>> connect() {
  absl::StatusOr<Ranks> ranks = ranksFromEnvironment();
  if (!ranks.ok())
    return ranks.status();
  if (ranks->size == 1)
    return nullptr;
  // Rank 0 chooses a port, so that several groups of processes can be there.
  ranks->address.clear();
  ranks->port = 0;
  ProcessesOptions options;
  options.mpiPath = MPI_LIBRARY;
  return Processes::connect(*ranks, options);
}

/// Answers until the input ends. `workers` is 0 for as many as there are CPUs.
static absl::Status serve(Processes *processes, int workers,
                          const std::string &cpuTarget) {
  ContextOptions options;
  options.threads = workers;
  if (processes)
    options.threads =
        std::max(1, findUsableCpus().count() / processes->localSize());
  absl::StatusOr<std::unique_ptr<Context>> context = Context::create(options);
  if (!context.ok())
    return context.status();
  Server server(**context, processes, cpuTarget);
  bool answers = !processes || processes->rank() == 0;
  for (std::string line;;) {
    bool hasLine = answers && std::getline(std::cin, line);
    if (processes) {
      absl::StatusOr<std::string> told = processes->store().broadcast(
          "request", hasLine ? line : "", absl::Hours(24));
      if (!told.ok())
        return told.status();
      line = *told;
      hasLine = !line.empty();
    }
    if (!hasLine)
      return absl::OkStatus();
    nlohmann::json answer = server.answer(line);
    if (answers)
      std::cout << answer.dump() << std::endl;
  }
}

int main(int argc, char **argv) {
  int workers = 0;
  absl::string_view cpuTarget;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--cpu-target=")) {
      cpuTarget = argument;
    } else if (!absl::SimpleAtoi(argument, &workers)) {
      std::cerr << "usage: shardc-bench-steps [--cpu-target=NAME] [WORKERS]\n";
      return 64;
    }
  }
  absl::StatusOr<std::unique_ptr<Processes>> processes = connect();
  absl::Status status = processes.status();
  if (status.ok())
    status = serve(processes->get(), workers, std::string(cpuTarget));
  if (status.ok() && *processes)
    status = (*processes)->end();
  if (status.ok())
    return 0;
  std::cerr << "shardc-bench-steps: " << status.message() << "\n";
  return 70;
}
