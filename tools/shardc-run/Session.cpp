//===- Session.cpp - One run of shardc-run
//---------------------------------===//

#include "Session.h"

#include "CheckReference.h"
#include "CompileOnce.h"

#include "shardc-rt/Cuda.h"
#include "shardc-rt/HappensBefore.h"
#include "shardc-rt/Npz.h"
#include "shardc-rt/Trainer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

/// The exit code for an error of the runtime.
static int exitCodeOf(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kOk:
    return 0;
  case absl::StatusCode::kInvalidArgument:
  case absl::StatusCode::kNotFound:
  case absl::StatusCode::kDataLoss:
  case absl::StatusCode::kFailedPrecondition:
    return 2;
  case absl::StatusCode::kResourceExhausted:
    return 4;
  case absl::StatusCode::kOutOfRange: // a loss that is not finite
    return 5;
  case absl::StatusCode::kDeadlineExceeded:
  case absl::StatusCode::kAborted: // another process failed or has gone
    return 6;
  case absl::StatusCode::kUnavailable:
  case absl::StatusCode::kUnimplemented:
    return 9;
  default:
    return 70;
  }
}

static int report(const absl::Status &status) {
  std::cerr << "shardc-run: " << status.message() << "\n";
  return exitCodeOf(status);
}

static int report(int exitCode, const std::string &message) {
  std::cerr << "shardc-run: " << message << "\n";
  return exitCode;
}

/// Where shipped data sets lie: the user's choice, an installation, the source
/// tree this was built from.
static std::vector<std::string> dataDirs() {
  std::vector<std::string> dirs;
  if (const char *chosen = std::getenv("SHARDC_DATA_DIR"))
    dirs.push_back(chosen);
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length > 0) {
    std::string exe(path, length);
    std::string bin = exe.substr(0, exe.rfind('/'));
    dirs.push_back(bin.substr(0, bin.rfind('/')) + "/share/shardc");
  }
  dirs.push_back(SHARDC_SOURCE_DATA_DIR);
  return dirs;
}

static bool isPlanFile(const std::string &path) {
  return absl::EndsWith(path, ".shardc");
}

/// Compiles or loads; exit code 0 and a plan, or the code and an error printed.
static int loadPlan(const Arguments &arguments, bool singleDevice,
                    std::shared_ptr<const Plan> &plan) {
  absl::StatusOr<std::shared_ptr<const Plan>> loaded;
  if (isPlanFile(arguments.input)) {
    loaded = Plan::loadFile(arguments.input);
    if (!loaded.ok())
      return report(loaded.status());
  } else {
    CompileOutcome outcome = compileOnce(
        {arguments.input, arguments.mesh, arguments.rules, arguments.target,
         arguments.machine, singleDevice ? "" : arguments.dumpDir,
         arguments.batchSize, arguments.microbatches, arguments.bucketBytes,
         singleDevice, arguments.verifyPartition && !singleDevice,
         arguments.partition, arguments.objective, arguments.deviceMemory,
         arguments.ignoreExpectations, arguments.regather,
         arguments.matmulPrecision},
        {arguments.noPlanCache, arguments.planCache});
    if (!singleDevice || outcome.exitCode != 0)
      std::cerr << outcome.diagnostics;
    if (outcome.exitCode != 0)
      return outcome.exitCode;
    loaded = Plan::parse(std::move(outcome.plan));
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

/// Flags that must agree with a plan that is already compiled.
static int checkAgainstPlan(const Arguments &arguments, const Plan &plan) {
  if (isPlanFile(arguments.input)) {
    if (!arguments.mesh.empty() &&
        sortedMesh(arguments.mesh) != sortedMesh(plan.mesh.toString()))
      return report(1, absl::StrCat("--mesh=", arguments.mesh, " differs from ",
                                    arguments.input, ", which is compiled for ",
                                    plan.mesh.toString(),
                                    "; compile the model again"));
    if (!arguments.target.empty() || !arguments.machine.empty() ||
        !arguments.dumpDir.empty() || !arguments.partition.empty() ||
        !arguments.objective.empty() || arguments.deviceMemory ||
        arguments.verifyPartition || arguments.bucketBytes >= 0 ||
        arguments.regather || !arguments.matmulPrecision.empty())
      return report(1, absl::StrCat("--target, --matmul-precision, --machine, "
                                    "--partition, "
                                    "--objective, --device-memory, --regather, "
                                    "--bucket-bytes, "
                                    "--shardc-dump-dir and "
                                    "--verify-partition are for models; ",
                                    arguments.input, " is compiled"));
    if (!arguments.rules.empty())
      return report(1, absl::StrCat("--rules cannot change ", arguments.input,
                                    ", which is compiled; compile the model "
                                    "again"));
    if (arguments.batchSize && arguments.batchSize != plan.batchSize)
      return report(1, absl::StrCat("--batch-size=", arguments.batchSize,
                                    " differs from ", arguments.input,
                                    ", which is compiled for ", plan.batchSize,
                                    "; compile the model again"));
    if (arguments.microbatches)
      return report(1, absl::StrCat("--microbatches cannot change ",
                                    arguments.input,
                                    ", which is compiled; compile the model "
                                    "again"));
    if (arguments.checkReference)
      return report(1, "--check-reference needs the model (.mlir): a plan does "
                       "not hold the unpartitioned program");
  }
  if (arguments.numDevices && arguments.numDevices < plan.mesh.numDevices())
    return report(1, absl::StrCat("the mesh ", plan.mesh.toString(), " needs ",
                                  plan.mesh.numDevices(),
                                  " devices, --num-devices gives ",
                                  arguments.numDevices));
  return 0;
}

/// With libraries of the vendor that are not where the loader looks.
static CudaOptions cudaOptions(const Arguments &arguments) {
  CudaOptions options;
  options.serialize = arguments.serialize;
  options.gemmCachePath = arguments.tuneProducts;
  options.deadline = absl::Seconds(arguments.deadline);
  if (const char *path = std::getenv("SHARDC_LIBCUDA"))
    options.driverPath = path;
  if (const char *path = std::getenv("SHARDC_LIBCUBLASLT"))
    options.cublasLtPath = path;
  if (const char *path = std::getenv("SHARDC_LIBNCCL"))
    options.ncclPath = path;
  if (const char *path = std::getenv("NVTX_INJECTION64_PATH"))
    options.nvtxPath = path;
  return options;
}

/// Which of `count` GPUs the devices of `plan` in this process are on.
static CudaOptions placeDevices(const Arguments &arguments, const Plan &plan,
                                int count, Store *store) {
  CudaOptions options = cudaOptions(arguments);
  int64_t devices = plan.mesh.numDevices();
  options.store = store;
  options.gpu = std::max(arguments.gpu, 0);
  if (!store) {
    options.gpus = arguments.gpus     ? arguments.gpus
                   : count >= devices ? static_cast<int>(devices)
                                      : 1;
    return options;
  }
  options.gpus =
      static_cast<int>(std::max<int64_t>(1, devices / store->ranks().size));
  // Where a process sees a single GPU, it has been chosen for it.
  if (arguments.gpu < 0 && count > 1)
    options.gpu = store->ranks().localRank * options.gpus;
  return options;
}

static bool isCuda(const Arguments &arguments) {
  return arguments.device == "cuda";
}

/// Meets the other processes that were started with this one, if any; exit code
/// 0, or the code and an error printed.
static int joinRanks(const Arguments &arguments,
                     std::unique_ptr<Store> &store) {
  absl::StatusOr<Ranks> ranks = ranksFromEnvironment();
  if (!ranks.ok())
    return report(1, std::string(ranks.status().message()));
  if (ranks->size == 1)
    return 0;
  // Each process would train a model of its own.
  if (!isCuda(arguments))
    return report(
        1, absl::StrCat(ranks->launcher, " started ", ranks->size,
                        " processes, and CPU devices are of one process: start "
                        "shardc-run once, without ",
                        ranks->launcher,
                        ", which uses all cores for the devices of the mesh, "
                        "or run on GPUs with --device=cuda"));
  absl::StatusOr<std::unique_ptr<Store>> connected =
      Store::connect(*ranks, absl::Seconds(arguments.deadline));
  if (!connected.ok())
    return report(connected.status());
  store = *std::move(connected);
  return 0;
}

static int listDevices(const Arguments &arguments) {
  if (isCuda(arguments)) {
    absl::StatusOr<std::vector<GpuInfo>> gpus =
        listGpus(cudaOptions(arguments));
    if (!gpus.ok())
      return report(gpus.status());
    for (size_t gpu = 0; gpu < gpus->size(); ++gpu)
      std::cout << "cuda:" << gpu << "  " << (*gpus)[gpu].name << ", sm_"
                << (*gpus)[gpu].architecture << "\n";
    return 0;
  }
  int64_t devices = arguments.numDevices ? arguments.numDevices : 8;
  for (int64_t device = 0; device < devices; ++device)
    std::cout << "cpu:" << device << "  virtual CPU device\n";
  return 0;
}

/// Looks for GPUs; without --target a model is compiled for them.
static int findGpus(Arguments &arguments, std::vector<GpuInfo> &gpus) {
  absl::StatusOr<std::vector<GpuInfo>> found = listGpus(cudaOptions(arguments));
  if (!found.ok())
    return report(found.status());
  if (found->empty())
    return report(9, "the CUDA driver shows no GPU");
  gpus = *std::move(found);
  // The newest architecture that the compiler generates code for; later GPUs
  // run it, too.
  constexpr int newest = 90;
  if (arguments.target.empty() && !isPlanFile(arguments.input))
    arguments.target =
        absl::StrCat("cuda:sm_", std::min(newest, gpus.front().architecture));
  return 0;
}

/// What the devices of `plan` are, as the header says it.
static std::string describeDevices(const Plan &plan, int threads) {
  int64_t count = plan.mesh.numDevices();
  return absl::StrCat(count, " virtual CPU ", count == 1 ? "device" : "devices",
                      " on ", threads, threads == 1 ? " thread" : " threads");
}

static std::string describeDevices(const Plan &plan,
                                   const std::vector<GpuInfo> &gpus,
                                   const CudaOptions &options) {
  int64_t count = plan.mesh.numDevices();
  bool isVirtual = !options.store && options.gpus == 1;
  const GpuInfo &first = gpus[std::min<size_t>(options.gpu, gpus.size() - 1)];
  std::string text = absl::StrCat(count, isVirtual ? " virtual" : "",
                                  count == 1 ? " device" : " devices", " on ",
                                  isVirtual ? "" : absl::StrCat(count, " x "),
                                  first.name, ", sm_", first.architecture);
  if (options.store)
    absl::StrAppend(&text, ", in ", options.store->ranks().size,
                    " processes of ", options.store->ranks().launcher);
  return text;
}

/// Proves again what loading the plan did, and prints what there is to order.
static int checkPlan(const Plan &plan) {
  for (const ProgramSpec &program : plan.programs) {
    absl::StatusOr<OrderReport> order = checkHappensBefore(plan, program);
    if (!order.ok())
      return report(order.status());
    std::cout << absl::StrFormat("%-14s ordered: ", program.name);
    for (Stream stream :
         {Stream::Compute, Stream::Communication, Stream::Copies})
      std::cout << toString(stream) << " "
                << order->commands[static_cast<int>(stream)] << ", ";
    std::cout << absl::StrFormat(
        "%d events; of %d pairs that may run at the same time none conflicts\n",
        order->events, order->concurrentPairs);
  }
  return 0;
}

static int loadData(const std::string &spec, const Arguments &arguments,
                    const Plan &plan, Dataset &dataset) {
  DatasetOptions options;
  options.seed = arguments.seed;
  options.dataDirs = dataDirs();
  absl::StatusOr<Dataset> loaded = loadDataset(spec, options);
  if (!loaded.ok())
    return report(loaded.status());
  if (absl::Status status = fitToPlan(plan, *loaded); !status.ok())
    return report(status);
  dataset = *std::move(loaded);
  return 0;
}

static void printSummary(const Arguments &arguments, const Executor &executor,
                         const TrainSummary &summary,
                         const std::optional<Evaluation> &evaluation,
                         std::ostream &out) {
  const Plan &plan = executor.plan();
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["model"] = plan.model;
    json["mesh"] = plan.mesh.toString();
    json["steps"] = summary.steps;
    json["first_loss"] = summary.firstLoss;
    json["final_loss"] = summary.finalLoss;
    json["epoch_losses"] = nlohmann::json::array();
    json["epoch_seconds"] = nlohmann::json::array();
    for (const EpochSummary &epoch : summary.epochs) {
      json["epoch_losses"].push_back(epoch.meanLoss);
      json["epoch_seconds"].push_back(epoch.seconds);
    }
    json["seconds"] = summary.seconds;
    json["samples_per_s"] = summary.samplesPerSecond;
    json["communication_share"] = summary.communicationShare;
    json["wire_bytes_per_step"] = summary.wireBytesPerStep;
    json["peak_bytes_per_device"] = plan.arenaBytes;
    json["allocated_bytes"] = executor.allocatedBytes();
    json["scratch_bytes_per_device"] = executor.scratchBytesPerDevice();
    if (evaluation) {
      json["eval_rows"] = evaluation->rows;
      json["eval_loss"] = evaluation->loss;
      if (evaluation->correct >= 0)
        json["eval_accuracy"] = double(evaluation->correct) / evaluation->rows;
    }
    std::cout << json.dump(2) << "\n";
    return;
  }
  if (evaluation) {
    out << absl::StrFormat("evaluation     loss %.6g", evaluation->loss);
    if (evaluation->correct >= 0)
      out << absl::StrFormat(", accuracy %.2f %% (%d of %d)",
                             100.0 * evaluation->correct / evaluation->rows,
                             evaluation->correct, evaluation->rows);
    out << "\n";
  }
  out << absl::StrFormat(
      "done           %d steps in %.3g s, loss %.6g -> %.6g, %.0f samples/s",
      summary.steps, summary.seconds, summary.firstLoss, summary.finalLoss,
      summary.samplesPerSecond);
  if (!std::isnan(summary.communicationShare))
    out << absl::StrFormat(", communication %.0f %% of the time",
                           100 * summary.communicationShare);
  out << "\n";
}

/// `store` leads to the other processes; null: there are none.
static int runAs(Arguments arguments, Store *store) {
  std::vector<GpuInfo> gpus;
  if (isCuda(arguments) && !arguments.checkPlan)
    if (int code = findGpus(arguments, gpus))
      return code;

  std::shared_ptr<const Plan> plan;
  if (int code = loadPlan(arguments, /*singleDevice=*/false, plan))
    return code;
  if (int code = checkAgainstPlan(arguments, *plan))
    return code;

  if (arguments.checkPlan)
    return checkPlan(*plan);

  ContextOptions contextOptions;
  contextOptions.threads = arguments.threads;
  absl::StatusOr<std::unique_ptr<Context>> context =
      Context::create(contextOptions);
  if (!context.ok())
    return report(context.status());
  // With --json standard output holds the summary alone. Of several processes
  // the first speaks.
  bool isFirst = !store || store->ranks().rank == 0;
  std::ostream silence(nullptr);
  std::ostream &out = !isFirst         ? silence
                      : arguments.json ? std::cerr
                                       : std::cout;
  CudaOptions placed;
  if (isCuda(arguments))
    placed = placeDevices(arguments, *plan, gpus.size(), store);
  printHeader(*plan,
              isCuda(arguments)
                  ? describeDevices(*plan, gpus, placed)
                  : describeDevices(*plan, (*context)->numThreads()),
              out);
  if (arguments.dryRun)
    return 0;
  if (arguments.data.empty())
    return report(1, "no data given: expected --data=FILE.npz, "
                     "synthetic:quadratic, digits, digits:train or "
                     "digits:test");

  Dataset dataset, evalDataset;
  if (int code = loadData(arguments.data, arguments, *plan, dataset))
    return code;
  std::string evalData = arguments.evalData;
  if (evalData.empty() && absl::StartsWith(arguments.data, "digits"))
    evalData = "digits:test";
  if (!evalData.empty())
    if (int code = loadData(evalData, arguments, *plan, evalDataset))
      return code;

  ExecutorOptions executorOptions;
  executorOptions.seed = arguments.seed;
  executorOptions.poisonPadding = arguments.checkReference;
  executorOptions.shareReplicas = !arguments.noAliasReplicas;
  auto createExecutor = [&](std::shared_ptr<const Plan> of,
                            const CudaOptions &onGpu) {
    return isCuda(arguments)
               ? createCudaExecutor(std::move(of), executorOptions, onGpu)
               : Executor::create(**context, std::move(of), executorOptions);
  };
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      createExecutor(plan, placed);
  if (!executor.ok())
    return report(executor.status());
  printMemory(**executor, out);
  if (uint64_t bytes = (*executor)->scratchBytesPerDevice())
    out << "scratch        " << bytes
        << " B per device beside that, for libraries and kernels\n";
  if (absl::Status status = (*executor)->initializeParameters(); !status.ok())
    return report(status);
  if (!arguments.loadParams.empty())
    if (absl::Status status = loadParameters(**executor, arguments.loadParams);
        !status.ok())
      return report(status);

  std::unique_ptr<ReferenceCheck> check;
  if (arguments.checkReference) {
    std::shared_ptr<const Plan> referencePlan;
    if (int code = loadPlan(arguments, /*singleDevice=*/true, referencePlan))
      return code;
    // Each process has its own, on its first GPU.
    CudaOptions alone = placed;
    alone.store = nullptr;
    alone.gpus = 1;
    absl::StatusOr<std::unique_ptr<Executor>> reference =
        createExecutor(referencePlan, alone);
    if (!reference.ok())
      return report(reference.status());
    absl::StatusOr<std::unique_ptr<ReferenceCheck>> created =
        ReferenceCheck::create(**executor, *std::move(reference),
                               arguments.tolerance);
    if (!created.ok())
      return report(created.status());
    check = *std::move(created);
  }

  TrainOptions options;
  options.epochs = arguments.epochs;
  options.steps = arguments.steps;
  options.seed = arguments.seed;
  options.shuffle = !arguments.noShuffle;
  options.logEvery = arguments.logEvery;
  if (isFirst)
    options.metricsPath = arguments.metrics;
  options.progressBar = isFirst && !arguments.json && isatty(STDOUT_FILENO);
  uint64_t reported = plan->findProgram("train_step")
                          ? plan->findProgram("train_step")->wireBytes
                          : 0;
  options.onBatch = [&](const Batch &batch) {
    return check ? check->step(batch) : absl::OkStatus();
  };
  options.onStep = [&](const RunResult &result) {
    if (result.wireBytes != reported)
      return absl::InternalError(
          absl::StrCat("the collectives of a step sent ", result.wireBytes,
                       " bytes per device, the plan reports ", reported));
    if (check)
      check->compare(result);
    return absl::OkStatus();
  };
  absl::StatusOr<TrainSummary> summary =
      train(**executor, dataset, options, out);
  if (!summary.ok())
    return report(summary.status());
  std::optional<Evaluation> evaluation;
  if (!evalData.empty()) {
    absl::StatusOr<Evaluation> evaluated = evaluate(**executor, evalDataset);
    if (!evaluated.ok())
      return report(evaluated.status());
    evaluation = *evaluated;
  }
  if (isFirst)
    printSummary(arguments, **executor, *summary, evaluation, out);
  if (!arguments.saveParams.empty()) {
    // All processes give what they have; one writes.
    absl::StatusOr<ArrayMap> parameters = readParameters(**executor);
    if (!parameters.ok())
      return report(parameters.status());
    if (isFirst)
      if (absl::Status status = writeNpz(arguments.saveParams, *parameters);
          !status.ok())
        return report(status);
  }
  if (check) {
    absl::StatusOr<bool> agrees = check->finish(out);
    if (!agrees.ok())
      return report(agrees.status());
    if (!*agrees)
      return report(3, "the result differs from the unpartitioned program's");
  }
  return 0;
}

int shardc::run::runSession(Arguments arguments) {
  if (arguments.device != "cpu" && !isCuda(arguments))
    return report(1, absl::StrCat("unknown device \"", arguments.device,
                                  "\"; expected cpu or cuda"));
  if (arguments.listDevices)
    return listDevices(arguments);
  std::unique_ptr<Store> store;
  if (!arguments.checkPlan && !arguments.dryRun)
    if (int code = joinRanks(arguments, store))
      return code;
  int code = runAs(std::move(arguments), store.get());
  // Nobody waits for a process that has given up.
  if (code != 0 && store)
    store->fail(absl::StrCat("ended with exit code ", code));
  return code;
}
