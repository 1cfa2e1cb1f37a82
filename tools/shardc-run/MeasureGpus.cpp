//===- MeasureGpus.cpp - GPUs as a machine file ---------------------------===//

#include "MeasureGpus.h"

#include "Devices.h"
#include "MeasureCollectives.h"

#include "backends/cuda/MeasureGpu.h"
#include "backends/cuda/MeasureGpuCollectives.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

using namespace shardc::run;
using namespace shardc::rt;

/// Bytes that a device sends in the collectives that are measured.
static constexpr int64_t leastSent = 1 << 10, mostSent = 32 << 20;

/// The link of the built-in machine of a GPU; one without such has PCIe.
static const char *linkOf(const std::string &gpu) {
  if (absl::StrContains(gpu, "H100") || absl::StrContains(gpu, "H200"))
    return "nvlink4";
  return absl::StrContains(gpu, "A100") ? "nvlink3" : "pcie4";
}

/// The first GPU of `options`, and the link that others of its kind have.
static absl::StatusOr<Json> measureOneGpu(const CudaOptions &options,
                                          bool isShared) {
  absl::StatusOr<cuda::GpuRates> rates = cuda::measureGpu(options);
  if (!rates.ok())
    return rates.status();
  // Powers of four from less than a tile to what fills a GPU.
  constexpr int64_t sides[] = {16, 64, 256, 1024, 4096};
  absl::StatusOr<cuda::GpuTimes> times = cuda::measureTimes(options, sides);
  if (!times.ok())
    return times.status();
  const char *link = linkOf(rates->name);
  Json json;
  json["name"] = rates->name;
  json["source"] = absl::StrCat("shardc-run --measure-machine on ", rates->name,
                                "; the link, ", link, ", is not measured");
  // There are no GEMMs of f64.
  json["device"]["flops_per_second"] = {{"f64", rounded(rates->f32 / 2)},
                                        {"f32", rounded(rates->f32)},
                                        {"tf32", rounded(rates->tf32)},
                                        {"bf16", rounded(rates->bf16)}};
  json["device"]["memory_bytes"] = rounded(double(rates->memoryBytes));
  for (auto [distance, rate] : times->memory)
    json["device"]["memory_bytes_per_second"][std::to_string(distance)] =
        rounded(rate);
  if (isShared)
    json["shared"] = true;
  json["step_seconds"] = rounded(times->stepSeconds);
  json["command_seconds"] = rounded(times->commandSeconds);
  if (isShared)
    json["concurrent_command_seconds"] =
        rounded(times->concurrentCommandSeconds);
  json["host_bytes_per_second"] = rounded(times->hostBytesPerSecond);
  for (const cuda::GemmTime &gemm : times->gemms)
    json["gemm_seconds"][gemm.type][std::to_string(gemm.rows)]
        [std::to_string(gemm.columns)][std::to_string(gemm.terms)] =
            rounded(gemm.seconds);
  for (const cuda::GemmFactor &one : times->factors)
    json["gemm_factors"][one.type][one.form][std::to_string(one.side)] =
        rounded(one.factor);
  json["default_link"] = link;
  return json;
}

/// Adds the collectives of `group` to `times`.
static absl::Status measureGroup(cuda::MeasuredCollectives &collectives,
                                 int64_t devices, Group group,
                                 TimesByGroup &times) {
  const Mesh mesh = meshOf(group, devices);
  if (absl::Status s = collectives.connect(mesh); !s.ok())
    return s;
  for (auto [kind, name] : collectiveKinds)
    for (int64_t bytes = leastSent; bytes <= mostSent; bytes *= 8) {
      const CollectiveSpec spec =
          makeCollective(kind, axisOfGroup, group.devices, bytes);
      absl::StatusOr<double> seconds = collectives.measure(spec);
      if (!seconds.ok())
        return seconds.status();
      times[name][group.name()][wireBytes(mesh, spec)] = *seconds;
    }
  return absl::OkStatus();
}

/// The GPUs of this process and what connects it with the others.
static absl::StatusOr<CudaOptions> optionsOf(const Arguments &arguments,
                                             Store *store) {
  CudaOptions options = cudaOptions(arguments);
  options.gpu = std::max(arguments.gpu, 0);
  options.gpus = std::max(arguments.gpus, 1);
  options.store = store;
  if (!store || arguments.gpu >= 0)
    return options;
  absl::StatusOr<std::vector<GpuInfo>> gpus = listGpus(options);
  if (!gpus.ok())
    return gpus.status();
  // A process that sees a single GPU was given it.
  if (gpus->size() > 1)
    options.gpu = store->ranks().localRank * options.gpus;
  return options;
}

static absl::StatusOr<Json> measureDevices(const Arguments &arguments,
                                           Store *store) {
  absl::StatusOr<CudaOptions> options = optionsOf(arguments, store);
  if (!options.ok())
    return options.status();
  const bool isShared = arguments.gpus == 1 && !store;
  const int processes = store ? store->ranks().size : 1;
  const int64_t devices = isShared ? 8 : int64_t(processes) * options->gpus;
  absl::StatusOr<Json> json = Json();
  // Alone, while the other processes wait for it.
  if (!store || store->ranks().rank == 0)
    json = measureOneGpu(*options, isShared);
  if (!json.ok() || devices == 1)
    return json;
  absl::StatusOr<std::unique_ptr<cuda::MeasuredCollectives>> collectives =
      cuda::MeasuredCollectives::open(*options);
  if (!collectives.ok())
    return collectives.status();
  TimesByGroup times;
  // Of virtual devices all that count are bytes: they are all in one group.
  const std::vector<Group> groups =
      isShared ? std::vector<Group>{{2, 1}, {4, 1}, {devices, 1}}
               : listGroups(devices);
  for (Group group : groups)
    if (absl::Status s = measureGroup(
            **collectives, isShared ? group.devices : devices, group, times);
        !s.ok())
      return s;
  if (store && store->ranks().rank > 0)
    return json;
  const std::string gpu = (*json)["name"];
  std::string many = absl::StrCat(devices, " x ", gpu);
  if (!isShared)
    (*json)["name"] = many;
  if (store)
    absl::StrAppend(&many, " in ", processes, " processes");
  (*json)["source"] =
      absl::StrCat("shardc-run --measure-machine on ",
                   isShared ? absl::StrCat("virtual devices of ", gpu) : many);
  writeCollectives(times, {devices, 1}, *json);
  // Virtual devices share it.
  Json &rate = (*json)["default_link"]["bytes_per_second"];
  if (isShared)
    rate = rounded(double(devices) * rate.get<double>());
  return json;
}

absl::StatusOr<Json> shardc::run::measureGpus(const Arguments &arguments,
                                              Store *store) {
  absl::StatusOr<Json> json = measureDevices(arguments, store);
  // The others wait for this one.
  if (!json.ok() && store)
    store->fail(json.status());
  return json;
}
