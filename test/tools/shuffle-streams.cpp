//===- shuffle-streams.cpp - Steps in every order that events allow -------===//
//
//   shuffle-streams MODEL... [COMPILE-OPTION...]
//
// Compiles each model for a GPU and for the emulated one, whose plans have the
// same commands, in the same memory, but kernels that a CPU can run. Then
// trains some steps in the order of the list, and again and again in orders
// drawn at random among those that the streams and events of the plan for the
// GPU allow: losses and parameters have to be the same bits. Loops are left
// out. Exit code 1 if they differ or if something fails; the last line counts.
// With --plant the orders keep streams alone, and right numbers are luck.
//
//===----------------------------------------------------------------------===//

#include "plan/PlanSpec.h"
#include "shardc-rt/Context.h"
#include "shardc-rt/Executor.h"

#include "shardc/Driver/CommandLine.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <random>

using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("shuffle-streams options");
static cl::list<std::string> models(cl::Positional, cl::OneOrMore,
                                    cl::cat(category), cl::desc("<model...>"));
static cl::opt<bool> plant("plant", cl::cat(category),
                           cl::desc("Forget all events"));
static cl::opt<int> count("count", cl::cat(category), cl::init(12),
                          cl::desc("Orders to try of each model"));

namespace {

using Random = std::mt19937;

/// Linking kernels runs lld, which resets LLVM's flags: they are read before.
struct Settings {
  CompileOptions options;
  int count;
  bool plant;
};

struct Totals {
  int64_t plans = 0, orders = 0, moved = 0;
};

/// Whether a command is there on a CPU and on a GPU.
bool isShared(const rt::Command &command) {
  return !std::holds_alternative<rt::UploadCommand>(command.operation) &&
         !std::holds_alternative<rt::DownloadCommand>(command.operation) &&
         !std::holds_alternative<rt::CollectiveWaitCommand>(command.operation);
}

/// Numbers of the commands of `program` that are there on both.
std::vector<uint32_t> getShared(const rt::ProgramSpec &program) {
  std::vector<uint32_t> shared;
  for (uint32_t i = 0; i < program.commands.size(); ++i)
    if (isShared(program.commands[i]))
      shared.push_back(i);
  return shared;
}

/// An order that keeps streams and events, of the commands that a CPU has, too.
/// Streams take turns by weights that are drawn first, so that one of them may
/// be far ahead.
std::vector<uint32_t> drawOrder(const rt::ProgramSpec &program,
                                bool keepsEvents, Random &random) {
  std::vector<uint32_t> streams[3], order;
  for (uint32_t i = 0; i < program.commands.size(); ++i)
    streams[int(program.commands[i].stream)].push_back(i);
  size_t next[3] = {0, 0, 0};
  std::vector<bool> done(program.commands.size());
  unsigned weights[3];
  for (unsigned &weight : weights)
    weight = 1 << random() % 8;
  while (order.size() < program.commands.size()) {
    llvm::SmallVector<unsigned> ready;
    for (unsigned stream = 0; stream < 3; ++stream) {
      if (next[stream] == streams[stream].size())
        continue;
      const auto &after = program.commands[streams[stream][next[stream]]].after;
      if (!keepsEvents ||
          llvm::all_of(after, [&](uint32_t other) { return done[other]; }))
        ready.append(weights[stream], stream);
    }
    unsigned stream = ready[random() % ready.size()];
    order.push_back(streams[stream][next[stream]++]);
    done[order.back()] = true;
  }
  llvm::erase_if(order,
                 [&](uint32_t i) { return !isShared(program.commands[i]); });
  return order;
}

/// `emulated` with its commands in the order of `order`, which is one of
/// `onGpu`. Every collective is done where it starts. Empty if the two programs
/// do not have the same commands.
std::vector<rt::Command> arrange(const rt::ProgramSpec &emulated,
                                 const rt::ProgramSpec &onGpu,
                                 llvm::ArrayRef<uint32_t> order) {
  std::vector<uint32_t> from = getShared(onGpu), to = getShared(emulated);
  if (from.size() != to.size())
    return {};
  std::vector<rt::Command> commands;
  for (uint32_t number : order) {
    size_t position = llvm::find(from, number) - from.begin();
    const rt::Command &command = emulated.commands[to[position]];
    if (command.operation.index() != onGpu.commands[number].operation.index())
      return {};
    commands.push_back(command);
    if (std::holds_alternative<rt::CollectiveStartCommand>(command.operation)) {
      rt::Command wait = command;
      wait.operation = rt::CollectiveWaitCommand{uint32_t(commands.size() - 1)};
      commands.push_back(std::move(wait));
    }
  }
  return commands;
}

/// Losses and final parameters of some steps, as bits.
absl::StatusOr<std::string> train(rt::Context &context,
                                  std::shared_ptr<const rt::Plan> plan) {
  auto executor = rt::Executor::create(context, plan);
  if (!executor.ok())
    return executor.status();
  if (absl::Status s = (*executor)->initializeParameters(); !s.ok())
    return s;
  Random random(7);
  std::string bits;
  for (int step = 0; step < 3; ++step) {
    std::map<std::string, rt::HostArray> arrays;
    rt::NamedArrays inputs;
    for (const rt::TensorInfo &tensor : plan->tensors()) {
      if (tensor.role != rt::Role::Input && tensor.role != rt::Role::Label)
        continue;
      rt::HostArray &array = arrays[tensor.name] =
          rt::HostArray(tensor.dtype, tensor.shape);
      if (tensor.dtype == rt::DType::F32)
        for (float &value : array.values<float>())
          value = float(random() % 2048) / 1024 - 1;
      else if (tensor.dtype == rt::DType::I32)
        for (int32_t &value : array.values<int32_t>())
          value = random() % std::max<int64_t>(tensor.labelClasses, 1);
      inputs[tensor.name] = array.view();
    }
    auto result = (*executor)->step(inputs);
    if (!result.ok())
      return result.status();
    bits.append(reinterpret_cast<const char *>(&result->loss), sizeof(double));
  }
  for (const rt::TensorInfo &tensor : plan->tensors()) {
    if (tensor.role != rt::Role::Parameter && tensor.role != rt::Role::State)
      continue;
    auto array = (*executor)->getTensor(tensor.name);
    if (!array.ok())
      return array.status();
    bits.append(reinterpret_cast<const char *>(array->data.data()),
                array->data.size());
  }
  return bits;
}

absl::StatusOr<std::shared_ptr<const rt::Plan>>
compile(const std::string &model, CompileOptions options, const char *target) {
  options.target = target;
  CompileResult result = compileFile(model, options);
  if (result.code != ExitCode::Ok)
    return absl::InvalidArgumentError(result.diagnostics);
  return rt::Plan::parse(std::move(result.plan));
}

absl::Status shuffle(rt::Context &context, const std::string &model,
                     const Settings &settings, Totals &totals) {
  auto onGpu = compile(model, settings.options, "cuda:sm_90");
  if (!onGpu.ok())
    return onGpu.status();
  auto emulated = compile(model, settings.options, "emulated-gpu");
  if (!emulated.ok())
    return emulated.status();
  const rt::ProgramSpec &program = *(*onGpu)->spec().findProgram("train_step");
  if (llvm::any_of(program.commands, [](const rt::Command &command) {
        return std::holds_alternative<rt::LoopCommand>(command.operation);
      }))
    return absl::OkStatus();
  auto expected = train(context, *emulated);
  if (!expected.ok())
    return expected.status();
  ++totals.plans;
  Random random(1);
  for (int trial = 0; trial < settings.count; ++trial) {
    std::vector<uint32_t> order = drawOrder(program, !settings.plant, random);
    rt::PlanSpec changed = (*emulated)->spec();
    for (rt::ProgramSpec &own : changed.programs)
      if (own.name == program.name) {
        own.commands = arrange(own, program, order);
        if (own.commands.empty())
          return absl::InternalError("the plans do not have the same commands");
      }
    auto actual = train(context, rt::makeUnverifiedPlan(std::move(changed)));
    if (!actual.ok())
      return actual.status();
    if (*actual != *expected)
      return absl::InternalError(
          "order " + std::to_string(trial) +
          ", which the events allow, gives other numbers");
    ++totals.orders;
    totals.moved += !llvm::is_sorted(order);
  }
  return absl::OkStatus();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  CompileOptionsFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Trains in every order that events allow\n");
  const Settings settings{flags.get(), count, plant};
  const std::vector<std::string> paths(models.begin(), models.end());
  auto context = rt::Context::create();
  Totals totals;
  for (const std::string &path : paths)
    if (absl::Status s = shuffle(**context, path, settings, totals); !s.ok()) {
      llvm::errs() << "shuffle-streams: " << path << ": "
                   << std::string(s.message()) << '\n';
      return 1;
    }
  llvm::outs() << llvm::formatv("{0} plans, {1} orders, {2} not that of the "
                                "list, the same bits\n",
                                totals.plans, totals.orders, totals.moved);
}
