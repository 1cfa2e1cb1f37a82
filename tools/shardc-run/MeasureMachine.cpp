//===- MeasureMachine.cpp - This computer as a machine file ---------------===//
//
// Measures the rates that the runtime attains on the workers: GEMMs and their
// vectors, memory by working set, collectives between eight virtual devices.
// Each is the best of several runs. With --device=cuda those of a GPU: GEMMs
// and copies. Of several processes see MeasureProcesses.cpp.
//
//===----------------------------------------------------------------------===//

#include "MeasureMachine.h"

#include "MeasureProcesses.h"
#include "Outputs.h"
#include "Report.h"

#include "backends/cuda/MeasureGpu.h"
#include "checkpoint/Files.h"
#include "collectives/Collectives.h"
#include "exec/MeasureRates.h"
#include "shardc-rt/Context.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

using Json = nlohmann::ordered_json;

/// The time spent on each figure.
static constexpr double seconds = 0.5;

namespace {
/// A collective between eight devices.
struct CollectiveTime {
  double seconds;
  double wireBytes; ///< Of all devices together.
};
} // namespace

/// Of `rows` times `columns` elements on each device, which a gather or a
/// reduce-scatter divides along `dim`.
static absl::StatusOr<CollectiveTime>
measureCollective(WorkerPool &pool, CollectiveKind kind, int64_t rows,
                  int64_t columns, int dim, int rounds) {
  constexpr int64_t devices = 8;
  const Mesh mesh({{"x", devices}});
  CollectiveTensor tensor;
  tensor.dtype = DType::F32;
  tensor.inShape = tensor.outShape = {rows, columns};
  tensor.dim = dim;
  if (kind == CollectiveKind::AllGather)
    tensor.inShape[dim] /= devices;
  if (kind == CollectiveKind::ReduceScatter)
    tensor.outShape[dim] /= devices;
  std::vector<std::vector<float>> in, out;
  for (int64_t device = 0; device < devices; ++device) {
    in.emplace_back(numElements(tensor.inShape), 1.0f);
    out.emplace_back(numElements(tensor.outShape), 0.0f);
    tensor.in.push_back(in.back().data());
    tensor.out.push_back(out.back().data());
  }
  CollectiveSpec spec;
  spec.kind = kind;
  spec.axes = {0};
  spec.tensors = {tensor};
  double bytes = double(wireBytes(mesh, spec)) * devices;
  auto prepared = createInProcessCollectives()->prepare(mesh, spec);
  if (!prepared.ok())
    return prepared.status();
  // Round by round, as in a step.
  double best = measureJob(pool, seconds, rounds, [&](int worker) {
    for (PreparedCollective *round = prepared->get(); round;
         round = round->next()) {
      for (int64_t task = worker; task < round->numTasks(); task += pool.size())
        round->runTask(task).IgnoreError(); // within a process none fails
      if (round->next())
        pool.barrier();
    }
  });
  return CollectiveTime{best, bytes};
}

double shardc::run::rounded(double value) {
  double shortened = 0;
  return absl::SimpleAtod(absl::StrFormat("%.3g", value), &shortened)
             ? shortened
             : value;
}

/// The computer with its workers as eight virtual devices.
static absl::StatusOr<Json> measureComputer(const Arguments &arguments) {
  ContextOptions options;
  options.threads = arguments.threads;
  absl::StatusOr<std::unique_ptr<Context>> context = Context::create(options);
  if (!context.ok())
    return context.status();
  WorkerPool &pool = (*context)->workers();
  const double f32 = measureGemm(pool, seconds, DType::F32);
  const double bf16 = measureGemm(pool, seconds, DType::BF16);
  const double memory = measureMemory(pool, seconds);
  constexpr int64_t large = int64_t(4) << 20;
  auto reduce =
      measureCollective(pool, CollectiveKind::AllReduce, large, 1, 0, 1);
  auto gather =
      measureCollective(pool, CollectiveKind::AllGather, large, 1, 0, 1);
  // An all-reduce over eight devices counts as six steps.
  auto small = measureCollective(pool, CollectiveKind::AllReduce, 8, 1, 0, 50);
  // The same sums in 8 runs of 512 elements, and in 512 of 8.
  auto long8 =
      measureCollective(pool, CollectiveKind::ReduceScatter, 64, 64, 0, 20);
  auto short8 =
      measureCollective(pool, CollectiveKind::ReduceScatter, 64, 64, 1, 20);
  for (const auto *one : {&reduce, &gather, &small, &long8, &short8})
    if (!one->ok())
      return one->status();
  const VectorRates vectors = measureVectors(pool, seconds);
  Json json;
  json["name"] = "this computer";
  json["source"] =
      absl::StrCat("shardc-run --measure-machine on ", pool.size(), " threads");
  json["shared"] = true;
  // There are no GEMMs of f64; a vector holds half as many.
  json["device"]["flops_per_second"] = {{"f64", rounded(f32 / 2)},
                                        {"f32", rounded(f32)},
                                        {"bf16", rounded(bf16)}};
  json["device"]["memory_bytes"] =
      rounded(double(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE));
  json["device"]["memory_bytes_per_second"] = rounded(memory);
  json["default_link"] = {
      {"bytes_per_second", rounded((reduce->wireBytes + gather->wireBytes) /
                                   (reduce->seconds + gather->seconds))},
      {"latency_seconds", rounded(small->seconds / 6)}};
  Json &computer = json["computer"];
  computer["workers"] = pool.size();
  computer["vector_lanes"] = vectors.lanes;
  computer["vector_terms"] = rounded(vectors.terms);
  computer["partial_vector_terms"] = rounded(vectors.partialTerms);
  computer["command_seconds"] = rounded(small->seconds);
  // Each result of a run is the sum of eight.
  computer["piece_seconds"] = rounded(
      std::max(0.0, short8->seconds - long8->seconds) / (8 * (512 - 8)));
  if (double exchange = measureExchange(pool, seconds); exchange > 0)
    computer["exchange_bytes_per_second"] = rounded(exchange);
  // What a GEMM of few rows takes beyond its arithmetic, for each byte of its
  // right factor, of which each worker has 512 columns: none is idle.
  constexpr double rows = 32, terms = 1024;
  const int64_t columns = int64_t(512) * pool.size();
  const double factorBytes = terms * double(columns) * sizeof(float);
  const double perRow = 2.0 * terms * double(columns);
  double few = measureGemm(pool, seconds, DType::F32, int64_t(rows), columns);
  if (few < f32)
    computer["factor_bytes_per_second"] =
        rounded(factorBytes / (rows * perRow * (1 / few - 1 / f32)));
  // From the caches of the cores to what none holds.
  for (size_t bytes = 256 << 10; bytes <= size_t(64) << 20; bytes *= 4)
    computer["memory_bytes_per_second"][std::to_string(bytes)] =
        rounded(measureMemoryOf(pool, seconds / 2, bytes));
  computer["memory_bytes_per_second"]["536870912"] = rounded(memory);
  return json;
}

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
  json["device"]["memory_bytes_per_second"] = rounded(rates->memory);
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
  if (peers.ofCpus) {
    Devices devices(arguments, peers);
    if (int code = devices.find())
      return code;
    json = measureProcesses(devices.workers(), *peers.ofCpus);
  } else {
    json = arguments.device == "cuda" ? measureOneGpu(arguments)
                                      : measureComputer(arguments);
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
  std::cout << absl::StrFormat(" memory %.3g GB/s",
                               inGiga(device["memory_bytes_per_second"]));
  if ((*json)["default_link"].is_object())
    std::cout << absl::StrFormat(
        ", collectives %.3g GB/s",
        inGiga((*json)["default_link"]["bytes_per_second"]));
  std::cout << "\n";
  return 0;
}
