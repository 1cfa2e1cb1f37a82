//===- check-streams.cpp - Whether plans need all of their events ---------===//
//
//   check-streams MODEL... [COMPILE-OPTION...]
//
// Compiles each model for a GPU and loads the plan, which checks that all
// accesses to the arena are ordered. Then takes every event out of it, one at a
// time: each time the checker has to object, or the event was superfluous or
// the checker is blind. Exit code 1 if a model does not compile, if a plan does
// not load or if an event is not missed; the last line counts.
//
//===----------------------------------------------------------------------===//

#include "plan/HappensBefore.h"

#include "shardc/Driver/CommandLine.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("check-streams options");
static cl::list<std::string> models(cl::Positional, cl::OneOrMore,
                                    cl::cat(category), cl::desc("<model...>"));

namespace {
struct Totals {
  int64_t programs = 0, commands = 0, pairs = 0, events = 0, superfluous = 0;
};
} // namespace

/// Takes the events of `program` out, one at a time.
static void takeEventsOut(const rt::PlanSpec &plan, rt::ProgramSpec program,
                          Totals &totals) {
  for (auto [number, command] : llvm::enumerate(program.commands)) {
    const std::vector<uint32_t> after = command.after;
    for (size_t event = 0; event < after.size(); ++event) {
      ++totals.events;
      command.after.erase(command.after.begin() + event);
      if (rt::checkHappensBefore(plan, program).ok()) {
        ++totals.superfluous;
        llvm::outs() << llvm::formatv(
            "{0}: program \"{1}\": nobody misses that command {2} comes after "
            "command {3}\n",
            plan.model, program.name, number, after[event]);
      }
      command.after = after;
    }
  }
}

/// The error in the plan of a model, or "".
static std::string check(const std::string &model,
                         const CompileOptions &options, Totals &totals) {
  CompileResult result = compileFile(model, options);
  if (result.code != ExitCode::Ok)
    return result.diagnostics;
  auto plan = rt::Plan::parse(std::move(result.plan));
  if (!plan.ok())
    return plan.status().ToString();
  for (const rt::PlanSpec &rank : (*plan)->spec().ranks())
    for (const rt::ProgramSpec &program : rank.programs) {
      auto order = rt::checkHappensBefore(rank, program);
      if (!order.ok())
        return order.status().ToString();
      ++totals.programs;
      totals.commands += program.commands.size();
      totals.pairs += order->concurrentPairs;
      takeEventsOut(rank, program, totals);
    }
  return "";
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  CompileOptionsFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Takes events out of the plans of models\n");
  CompileOptions options = flags.get();
  options.target = "cuda:sm_90";
  const std::vector<std::string> paths(models.begin(), models.end());
  Totals totals;
  for (const std::string &path : paths)
    if (std::string problem = check(path, options, totals); !problem.empty()) {
      llvm::errs() << "check-streams: " << path << ": " << problem << '\n';
      return 1;
    }
  llvm::outs() << llvm::formatv("{0} programs, {1} commands, {2} pairs that "
                                "may run at the same time, {3} "
                                "events, {4} superfluous\n",
                                totals.programs, totals.commands, totals.pairs,
                                totals.events, totals.superfluous);
  return totals.superfluous > 0;
}
