//===- Devices.cpp - The devices of a run ---------------------------------===//

#include "Devices.h"

#include "CompileInput.h"
#include "Report.h"

#include "base/UsableCpus.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

static bool isCuda(const Arguments &arguments) {
  return arguments.device == "cuda";
}

CudaOptions shardc::run::cudaOptions(const Arguments &arguments) {
  CudaOptions options;
  options.serialize = arguments.serialize;
  options.gemmCachePath = arguments.tuneGemms;
  options.deadline = arguments.deadline;
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

int shardc::run::listDevices(const Arguments &arguments) {
  std::vector<std::pair<std::string, std::string>> devices;
  if (isCuda(arguments)) {
    absl::StatusOr<std::vector<GpuInfo>> gpus =
        listGpus(cudaOptions(arguments));
    if (!gpus.ok())
      return report(gpus.status());
    for (size_t gpu = 0; gpu < gpus->size(); ++gpu)
      devices.emplace_back(
          absl::StrCat("cuda:", gpu),
          absl::StrCat((*gpus)[gpu].name, ", sm_", (*gpus)[gpu].architecture));
  } else {
    int64_t count = arguments.numDevices ? arguments.numDevices : 8;
    for (int64_t device = 0; device < count; ++device)
      devices.emplace_back(absl::StrCat("cpu:", device), "virtual CPU device");
  }
  nlohmann::ordered_json json;
  json["devices"] = nlohmann::json::array();
  for (const auto &[name, kind] : devices) {
    json["devices"].push_back({{"name", name}, {"kind", kind}});
    if (!arguments.json)
      std::cout << name << "  " << kind << "\n";
  }
  if (arguments.json)
    std::cout << json.dump(2) << "\n";
  return 0;
}

/// The ranks as their launcher numbers them. MPI finds out itself where rank 0
/// is: without an address, or a port, the store gets one of its choice.
static absl::StatusOr<Ranks> ranksForMpi() {
  auto value = [](const char *name) -> std::optional<std::string> {
    const char *found = std::getenv(name);
    return found ? std::optional<std::string>(found) : std::nullopt;
  };
  absl::StatusOr<Ranks> ranks =
      ranksFrom([&](const char *name) -> std::optional<std::string> {
        if (name == absl::string_view("MASTER_ADDR") && !value(name))
          return "later";
        return value(name);
      });
  if (ranks.ok() && !value("MASTER_ADDR"))
    ranks->address.clear();
  if (ranks.ok() && !value("MASTER_PORT") && !value("SHARDC_PORT"))
    ranks->port = 0;
  return ranks;
}

static ProcessesOptions processesOptions(const Arguments &arguments) {
  ProcessesOptions options;
  options.deadline = arguments.deadline;
  options.heartbeat = arguments.heartbeat;
  options.mpiPath = libraryPath("libshardc-rt-mpi.so");
  if (const char *path = std::getenv("SHARDC_LIBMPI"))
    options.mpiPath = path;
  return options;
}

bool shardc::run::isSecondProcess() {
  absl::StatusOr<Ranks> ranks = ranksForMpi();
  return ranks.ok() && ranks->rank > 0;
}

int shardc::run::joinRanks(const Arguments &arguments, Peers &peers) {
  absl::StatusOr<Ranks> ranks =
      isCuda(arguments) ? ranksFromEnvironment() : ranksForMpi();
  // A launcher's incomplete variables do not matter to a run on CPUs.
  if (!ranks.ok())
    return isCuda(arguments) ? report(1, std::string(ranks.status().message()))
                             : 0;
  peers.isLaunched = !ranks->launcher.empty();
  if (ranks->size == 1)
    return 0;
  if (isCuda(arguments)) {
    absl::StatusOr<std::unique_ptr<Store>> connected =
        Store::connect(*ranks, {arguments.deadline, arguments.heartbeat});
    if (!connected.ok())
      return report(connected.status());
    peers.ofGpus = *std::move(connected);
    return 0;
  }
  // It has no MPI. Each process would train a model of its own.
  if (ranks->launcher == "torchrun")
    return report(
        1, absl::StrCat("torchrun started ", ranks->size,
                        " processes, which is for GPUs (--device=cuda): CPU "
                        "devices in several processes need MPI, so start them "
                        "with mpirun -n ",
                        ranks->size));
  absl::StatusOr<std::unique_ptr<Processes>> connected =
      Processes::connect(*ranks, processesOptions(arguments));
  if (!connected.ok())
    return report(connected.status());
  peers.ofCpus = *std::move(connected);
  return 0;
}

/// Bytes of memory that this process may have.
static uint64_t memoryBytes() {
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  // A container sees its own group as the root.
  for (const char *path : {"/sys/fs/cgroup/memory.max",
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (uint64_t most; std::ifstream(path) >> most)
      bytes = std::min(bytes, most);
  return bytes;
}

Devices::Devices(const Arguments &arguments, const Peers &peers)
    : arguments(arguments), cuda(cudaOptions(arguments)), peers(peers) {
  cuda.store = peers.ofGpus.get();
}

int Devices::find() {
  if (!isCuda(arguments)) {
    ContextOptions options;
    options.threads = arguments.threads;
    UsableCpus cpus = findUsableCpus();
    // Processes of one machine share its CPUs, unless the launcher has divided
    // them.
    if (peers.ofCpus && !arguments.threads)
      options.threads =
          cpus.allowed < cpus.online
              ? cpus.count()
              : std::max(1, cpus.count() / peers.ofCpus->localSize());
    absl::StatusOr<std::unique_ptr<Context>> created = Context::create(options);
    if (!created.ok())
      return report(created.status());
    context = *std::move(created);
    if (!arguments.threads)
      cpuLimits = cpus.limits();
    if (int count = cpus.count(); arguments.threads > count)
      report(0, absl::StrCat("warning: --threads=", arguments.threads, " on ",
                             count, count == 1 ? " CPU" : " CPUs",
                             " is slower than --threads=", count,
                             ": threads wait for those that have no CPU"));
    return 0;
  }
  absl::StatusOr<std::vector<GpuInfo>> found = listGpus(cuda);
  if (!found.ok())
    return report(found.status());
  if (found->empty())
    return report(9, "the CUDA driver shows no GPU");
  gpus = *std::move(found);
  return 0;
}

/// The highest level of x86-64 that code is generated for and this CPU has.
static const char *cpuLevel() {
  bool isWide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return isWide ? "x86-64-v4" : "x86-64-v3";
}

std::string Devices::target() const {
  if (!isCuda(arguments)) {
    std::string level =
        arguments.cpuTarget.empty() ? cpuLevel() : arguments.cpuTarget;
    // What is no level of the compiler's is not in the plan either, which says
    // so when it is loaded.
    bool isKnown = level == "x86-64-v3" || level == "x86-64-v4";
    return isKnown ? absl::StrCat("cpu:", level) : "cpu";
  }
  // The newest architecture that the compiler generates code for; later GPUs
  // run it, too.
  constexpr int newest = 90;
  return gpus.empty()
             ? ""
             : absl::StrCat("cuda:sm_",
                            std::min(newest, gpus.front().architecture));
}

void Devices::place(const Plan &plan) {
  int count = gpus.size();
  int64_t devices = plan.numDevices();
  cuda.gpu = std::max(arguments.gpu, 0);
  if (!cuda.store) {
    cuda.gpus = arguments.gpus     ? arguments.gpus
                : count >= devices ? static_cast<int>(devices)
                                   : 1;
    return;
  }
  const Ranks &ranks = cuda.store->ranks();
  cuda.gpus = static_cast<int>(std::max<int64_t>(1, devices / ranks.size));
  // A process that sees a single GPU was given it.
  if (arguments.gpu < 0 && count > 1)
    cuda.gpu = ranks.localRank * cuda.gpus;
}

std::string Devices::describe(const Plan &plan) const {
  int64_t count = plan.numDevices();
  if (context) {
    int threads = context->numThreads();
    std::string text =
        absl::StrCat(count, " virtual CPU ", count == 1 ? "device" : "devices",
                     " on ", threads, threads == 1 ? " thread" : " threads");
    if (!cpuLimits.empty())
      absl::StrAppend(&text, " (", cpuLimits, ")");
    if (peers.ofCpus)
      absl::StrAppend(&text, " each of ", peers.ofCpus->size(),
                      " processes of ", peers.store()->ranks().launcher);
    return text;
  }
  bool isVirtual = !cuda.store && cuda.gpus == 1;
  const GpuInfo &first = gpus[std::min<size_t>(cuda.gpu, gpus.size() - 1)];
  std::string text = absl::StrCat(count, isVirtual ? " virtual" : "",
                                  count == 1 ? " device" : " devices", " on ",
                                  isVirtual ? "" : absl::StrCat(count, " x "),
                                  first.name, ", sm_", first.architecture);
  if (cuda.store)
    absl::StrAppend(&text, ", in ", cuda.store->ranks().size, " processes of ",
                    cuda.store->ranks().launcher);
  return text;
}

absl::StatusOr<std::unique_ptr<Executor>>
Devices::createExecutor(std::shared_ptr<const Plan> plan,
                        ExecutorOptions options) const {
  options.processes = peers.ofCpus.get();
  // A launcher may start any number of processes, which all have these bits.
  options.orderedSums |= peers.isLaunched;
  return context ? Executor::create(*context, std::move(plan), options)
                 : createCudaExecutor(std::move(plan), options, cuda);
}

int Devices::checkMemory(uint64_t bytes, uint64_t referenceBytes) const {
  uint64_t most = memoryBytes();
  if (!context || bytes + referenceBytes <= most)
    return 0;
  return report(
      4, absl::StrCat(
             "out of memory: --check-reference needs ", referenceBytes,
             " bytes for the unpartitioned program and copies of parameters "
             "and states beside ",
             bytes, " for the devices, and this computer has ", most));
}

absl::StatusOr<std::unique_ptr<Executor>>
Devices::createReference(std::shared_ptr<const Plan> plan,
                         const ExecutorOptions &options) const {
  // Each process has its own, on its first GPU.
  if (context)
    return Executor::create(*context, std::move(plan), options);
  CudaOptions alone = cuda;
  alone.store = nullptr;
  alone.gpus = 1;
  return createCudaExecutor(std::move(plan), options, alone);
}
