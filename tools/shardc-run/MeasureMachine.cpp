//===- MeasureMachine.cpp - This computer as a machine file ---------------===//
//
// Of virtual devices see MeasureComputer.cpp, of several processes
// MeasureProcesses.cpp. With --device=cuda the rates and times of a GPU: GEMMs,
// copies and the starts of commands, each the best of several runs.
//
//===----------------------------------------------------------------------===//

#include "MeasureMachine.h"

#include "MeasureComputer.h"
#include "MeasureProcesses.h"
#include "Outputs.h"
#include "Report.h"

#include "backends/cuda/MeasureGpu.h"
#include "checkpoint/Files.h"
#include "shardc-rt/Context.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <iostream>

using namespace shardc::run;
using namespace shardc::rt;

/// The link of the built-in machine of a GPU; one without such has PCIe.
static const char *linkOf(const std::string &gpu) {
  if (absl::StrContains(gpu, "H100") || absl::StrContains(gpu, "H200"))
    return "nvlink4";
  return absl::StrContains(gpu, "A100") ? "nvlink3" : "pcie4";
}

/// A GPU. Links between several are not measured.
static absl::StatusOr<Json> measureOneGpu(const Arguments &arguments) {
  CudaOptions options = cudaOptions(arguments);
  options.gpu = std::max(arguments.gpu, 0);
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
  json["step_seconds"] = rounded(times->stepSeconds);
  json["command_seconds"] = rounded(times->commandSeconds);
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

/// A figure of the file in units of 1e9.
static double inGiga(const Json &figure) { return figure.get<double>() / 1e9; }

int shardc::run::measureMachine(const Arguments &arguments,
                                const Peers &peers) {
  const bool isFirst = !peers.store() || peers.store()->ranks().rank == 0;
  if (int code = isFirst ? checkOutputs(arguments) : 0)
    return code;
  absl::StatusOr<Json> json = absl::InternalError("nothing is measured");
  if (arguments.device == "cuda") {
    json = measureOneGpu(arguments);
  } else {
    Devices devices(arguments, peers);
    if (int code = devices.find())
      return code;
    WorkerPool &pool = devices.workers().workers();
    // All have met by now.
    if (peers.ofCpus && isFirst)
      std::cerr << "measuring " << peers.ofCpus->size() << " processes\n";
    json = peers.ofCpus ? measureProcesses(pool, *peers.ofCpus)
                        : measureComputer(pool);
  }
  if (!json.ok())
    return report(json.status());
  if (peers.ofCpus && peers.ofCpus->rank() > 0)
    return 0;
  const std::string text = json->dump(2) + "\n";
  if (absl::Status status =
          replaceFile(arguments.measureMachine,
                      [&](WritableFile &file) { return file.write(0, text); });
      !status.ok())
    return report(status);
  if (arguments.json) {
    std::cout << text;
    return 0;
  }
  const Json &device = (*json)["device"], &flops = device["flops_per_second"];
  std::cout << arguments.measureMachine << ": GEMMs";
  for (const char *type : {"f32", "tf32", "bf16"})
    if (flops.contains(type))
      std::cout << absl::StrFormat(" of %s %.3g GFLOP/s,", type,
                                   inGiga(flops[type]));
  // By distance, the largest last.
  const Json &memory = device["memory_bytes_per_second"];
  std::cout << absl::StrFormat(
      " memory %.3g GB/s", inGiga(memory.is_object() ? memory.back() : memory));
  if ((*json)["default_link"].is_object())
    std::cout << absl::StrFormat(
        ", collectives %.3g GB/s",
        inGiga((*json)["default_link"]["bytes_per_second"]));
  std::cout << "\n";
  return 0;
}
