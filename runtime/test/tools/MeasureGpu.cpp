//===- MeasureGpu.cpp - The speed of a plan's step on a GPU ---------------===//
//
//   measure-gpu PLAN.shardc [STEPS]
//
// Runs steps on random numbers, and every command of a step alone, with all
// devices of the mesh on one GPU. Prints, as "name value":
//   step_us             a step, of many that are in flight two at a time
//   submit_us           the time in which the host hands over its inputs
//   gemms_us            its GEMMs alone, one after the other
//   gemms_ratio         gemms_us / step_us
//   copy_GBs            rate at which a copy within the GPU reads and writes
//   update_GBs          rate at which the longest kernel of the update does
//   update_ratio        update_GBs / copy_GBs
//   all_reduce_ratio    of the longest all-reduce: the time in which its
//                       operands could be copied, over its own
//   planned, arenas     bytes of the arenas of all devices: by the plan, and as
//                       they were allocated
//   scratch             bytes of GEMMs, collectives and contexts, of all
//                       devices
//   used                bytes of the first GPU that are in use, by anybody,
//                       after some steps
//   grown               the growth during the other steps
// and then, on a line each, "command", its place in the step, the microseconds
// of the command alone, the bytes that it reads and writes on a device, and its
// name. The libraries are those of SHARDC_LIBCUDA and SHARDC_LIBCUBLASLT.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"
#include "backends/cuda/Gemm.h"
#include "plan/Accesses.h"

#include <cstdio>
#include <cstdlib>
#include <random>

using namespace shardc::rt;

static int fail(const absl::Status &status) {
  std::fprintf(stderr, "measure-gpu: %s\n",
               std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kUnavailable ? 9 : 1;
}

/// Bytes that a command reads and writes, on one device.
static double bytesOf(const PlanSpec &plan, const ProgramSpec &program,
                      const Command &command) {
  double sum = 0;
  for (const Access &access : accessesOf(plan, program, command, 1))
    sum += static_cast<double>(access.bytes.end - access.bytes.begin);
  return sum;
}

/// The name of a command as a user would look for it.
static std::string titleOf(const ProgramSpec &program, size_t number) {
  const Command &command = program.commands[number];
  if (std::holds_alternative<GemmCommand>(command.operation))
    return "GEMM " + cuda::gemmRequest(program, number).name();
  return std::string(nameOf(command));
}

/// Random numbers in [-1, 1) where elements are floats: GPUs multiply zeros
/// faster.
static void fill(HostArray &array) {
  if (array.dtype != DType::F32)
    return;
  auto *values = reinterpret_cast<float *>(array.data.data());
  std::minstd_rand generator;
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (size_t i = 0; i < array.data.size() / sizeof(float); ++i)
    values[i] = uniform(generator);
}

/// Mean seconds.
struct StepTimes {
  double step = 0;
  double submit = 0; ///< The part in which the caller submits it.
};

static absl::StatusOr<StepTimes> timeSteps(Executor &executor, int steps) {
  std::map<std::string, HostArray> arrays;
  NamedArrays inputs;
  for (const TensorInfo &tensor : executor.plan().tensors())
    if (tensor.role == Role::Input || tensor.role == Role::Label) {
      auto [place, isNew] =
          arrays.emplace(tensor.name, HostArray(tensor.dtype, tensor.shape));
      fill(place->second);
      inputs.emplace(tensor.name, place->second.view());
    }
  using Clock = std::chrono::steady_clock;
  auto secondsSince = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Clock::time_point start;
  StepTimes times;
  const int warm = 3;
  int submitted = 0;
  for (int step = 0; step < warm + steps; ++step) {
    for (; submitted < warm + steps &&
           executor.inFlight() < executor.maxInFlight();
         ++submitted) {
      const Clock::time_point before = Clock::now();
      if (absl::Status s = executor.submit("train_step", inputs); !s.ok())
        return s;
      if (submitted >= warm)
        times.submit += secondsSince(before) / steps;
    }
    if (absl::StatusOr<RunResult> result = executor.await(); !result.ok())
      return result.status();
    if (step == warm - 1)
      start = Clock::now();
  }
  times.step = secondsSince(start) / steps;
  return times;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: measure-gpu PLAN.shardc [STEPS]\n");
    return 1;
  }
  int steps = argc > 2 ? std::atoi(argv[2]) : 20;
  auto plan = Plan::loadFile(argv[1]);
  if (!plan.ok())
    return fail(plan.status());
  CudaOptions options;
  if (const char *path = std::getenv("SHARDC_LIBCUDA"))
    options.driverPath = path;
  if (const char *path = std::getenv("SHARDC_LIBCUBLASLT"))
    options.cublasLtPath = path;
  auto made = createCudaExecutor(*plan, {}, options);
  if (!made.ok())
    return fail(made.status());
  auto &executor = static_cast<cuda::CudaExecutor &>(**made);
  if (absl::Status s = executor.initializeParameters(); !s.ok())
    return fail(s);
  const auto devices = static_cast<double>((*plan)->numDevices());
  // Drivers allocate on first use.
  auto first = timeSteps(executor, 1);
  auto used = executor.usedGpuBytes();
  auto step = timeSteps(executor, steps);
  auto usedAfter = executor.usedGpuBytes();
  size_t number = 0;
  while ((*plan)->spec().programs[number].name != "train_step")
    ++number;
  const ProgramSpec &program = (*plan)->spec().programs[number];
  auto alone = executor.timeCommands(number, 10);
  auto copies = executor.measureCopies(uint64_t(256) << 20, 10);
  for (const absl::Status &status :
       {first.status(), used.status(), step.status(), usedAfter.status(),
        alone.status(), copies.status()})
    if (!status.ok())
      return fail(status);
  double gemms = 0, update = 0, updateBytes = 0, reduce = 0, reduceBytes = 0;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Command &command = program.commands[i];
    double seconds = (*alone)[i];
    if (std::holds_alternative<GemmCommand>(command.operation))
      gemms += seconds;
    auto *start = std::get_if<CollectiveStartCommand>(&command.operation);
    if (start && start->kind == CollectiveKind::AllReduce && seconds > reduce) {
      reduce = seconds;
      reduceBytes = devices * bytesOf((*plan)->spec(), program, command);
    }
    if (std::holds_alternative<LaunchCommand>(command.operation) &&
        command.part == Part::Update && seconds > update) {
      update = seconds;
      updateBytes = devices * bytesOf((*plan)->spec(), program, command);
    }
  }
  auto print = [](const char *name, double value) {
    std::printf("%s %.6g\n", name, value);
  };
  std::printf("gpu %s\n", executor.gpuName().c_str());
  print("step_us", step->step * 1e6);
  print("submit_us", step->submit * 1e6);
  print("gemms_us", gemms * 1e6);
  print("gemms_ratio", gemms / step->step);
  print("copy_GBs", *copies * 1e-9);
  if (update > 0) {
    print("update_GBs", updateBytes / update * 1e-9);
    print("update_ratio", updateBytes / update / *copies);
  }
  if (reduce > 0)
    print("all_reduce_ratio", reduceBytes / *copies / reduce);
  std::printf("planned %.0f\n", devices * (*plan)->arenaBytes());
  std::printf("arenas %.0f\n",
              static_cast<double>(executor.allocatedArenaBytes()));
  std::printf("scratch %.0f\n", devices * executor.scratchBytesPerDevice());
  std::printf("used %.0f\n", static_cast<double>(*used));
  std::printf("grown %.0f\n",
              static_cast<double>(*usedAfter) - static_cast<double>(*used));
  for (size_t i = 0; i < program.commands.size(); ++i)
    std::printf("command %zu %.6g %.0f %s\n", i, (*alone)[i] * 1e6,
                bytesOf((*plan)->spec(), program, program.commands[i]),
                titleOf(program, i).c_str());
  return 0;
}
