//===- MeasureMachine.cpp - This computer as a machine file ---------------===//
//
// Measures the rates that the runtime attains on the workers: GEMMs, copies in
// memory, collectives between eight virtual devices. Each is the best of
// several runs.
//
//===----------------------------------------------------------------------===//

#include "MeasureMachine.h"

#include "Outputs.h"
#include "Report.h"

#include "checkpoint/Files.h"
#include "collectives/Collectives.h"
#include "exec/MeasureRates.h"
#include "shardc-rt/Context.h"

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

/// Of `elements` on each device.
static absl::StatusOr<CollectiveTime> measureCollective(WorkerPool &pool,
                                                        CollectiveKind kind,
                                                        int64_t elements,
                                                        int rounds) {
  constexpr int64_t devices = 8;
  const Mesh mesh({{"x", devices}});
  CollectiveTensor tensor;
  tensor.dtype = DType::F32;
  bool isGather = kind == CollectiveKind::AllGather;
  tensor.inShape = {isGather ? elements / devices : elements};
  tensor.outShape = {elements};
  std::vector<std::vector<float>> in, out;
  for (int64_t device = 0; device < devices; ++device) {
    in.emplace_back(tensor.inShape[0], 1.0f);
    out.emplace_back(elements, 0.0f);
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

/// Three digits: more would be noise.
static double rounded(double value) {
  double shortened = 0;
  return absl::SimpleAtod(absl::StrFormat("%.3g", value), &shortened)
             ? shortened
             : value;
}

int shardc::run::measureMachine(const Arguments &arguments) {
  if (int code = checkOutputs(arguments))
    return code;
  ContextOptions options;
  options.threads = arguments.threads;
  absl::StatusOr<std::unique_ptr<Context>> context = Context::create(options);
  if (!context.ok())
    return report(context.status());
  WorkerPool &pool = (*context)->workers();
  const double f32 = measureGemm(pool, seconds, DType::F32);
  const double bf16 = measureGemm(pool, seconds, DType::BF16);
  const double memory = measureMemory(pool, seconds);
  constexpr int64_t large = int64_t(4) << 20;
  auto reduce = measureCollective(pool, CollectiveKind::AllReduce, large, 1);
  auto gather = measureCollective(pool, CollectiveKind::AllGather, large, 1);
  // An all-reduce over eight devices counts as six steps.
  auto small = measureCollective(pool, CollectiveKind::AllReduce, 8, 50);
  for (const auto *one : {&reduce, &gather, &small})
    if (!one->ok())
      return report(one->status());
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
  const std::string text = json.dump(2) + "\n";
  if (absl::Status status =
          replaceFile(arguments.measureMachine,
                      [&](WritableFile &file) { return file.write(0, text); });
      !status.ok())
    return report(status);
  if (arguments.json) {
    std::cout << text;
    return 0;
  }
  std::cout << absl::StrFormat(
      "%s: GEMMs of f32 %.3g GFLOP/s, of bf16 %.3g GFLOP/s, memory %.3g GB/s, "
      "collectives %.3g GB/s\n",
      arguments.measureMachine, f32 / 1e9, bf16 / 1e9, memory / 1e9,
      json["default_link"]["bytes_per_second"].get<double>() / 1e9);
  return 0;
}
