//===- PrintProfile.cpp - Where the time of a step went -------------------===//

#include "PrintProfile.h"

#include "backends/cuda/MeasureGpu.h"
#include "exec/MeasureRates.h"
#include "plan/PlanSpec.h"
#include "train/Format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

using Json = nlohmann::ordered_json;

/// The lines for people; JSON has all commands.
static constexpr size_t numLines = 10;

/// The rate of GEMMs as the largest one of `program` multiplies.
static double rateOf(const cuda::GpuRates &rates, const ProgramSpec &program) {
  double most = 0, rate = rates.f32;
  for (const Command &command : program.commands)
    if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
      const double size = double(gemm->batch) * gemm->m * gemm->n * gemm->k;
      if (size <= most)
        continue;
      most = size;
      rate = program.typesOf(*gemm).factors == DType::BF16 ? rates.bf16
             : gemm->precision == Precision::TF32          ? rates.tf32
                                                           : rates.f32;
    }
  return rate;
}

static void measureRates(const Plan &plan, const Devices &devices,
                         ProfileReport &report) {
  constexpr double seconds = 0.1;
  if (!plan.isForGpu()) {
    WorkerPool &workers = devices.workers().workers();
    report.gemmFlops = measureGemm(workers, seconds, DType::F32);
    report.memoryBytes = measureMemory(workers, seconds);
    report.cacheBytes = measureCache(workers, seconds);
    return;
  }
  constexpr int64_t rows = 4096;
  absl::StatusOr<cuda::GpuRates> rates =
      cuda::measureGpu(devices.optionsOfGpus(), rows);
  if (!rates.ok())
    return;
  report.memoryBytes = rates->memory;
  if (const ProgramSpec *program = plan.spec().findProgram("train_step"))
    report.gemmFlops = rateOf(*rates, *program);
}

ProfileReport shardc::run::reportProfile(const Trace &trace, const Plan &plan,
                                         const Devices &devices) {
  ProfileReport report;
  report.profile = profileOf(trace.internals());
  measureRates(plan, devices, report);
  if (const ProgramSpec *program = plan.spec().findProgram("train_step")) {
    const std::optional<PipelineSpec> &pipeline = plan.spec().pipeline;
    report.estimated =
        pipeline ? pipeline->estimatedSeconds : program->estimatedSeconds;
    report.machine = program->estimatedOn;
  }
  return report;
}

namespace {
/// The rate of a command, beside one that the computer attains.
struct Rate {
  double value = 0; ///< Per second; 0: it moves and computes nothing.
  bool isOfFlops = false;
  double attained = 0;
};
} // namespace

/// What the last cache of the computer holds.
static double cacheSize() {
  return std::max({sysconf(_SC_LEVEL2_CACHE_SIZE),
                   sysconf(_SC_LEVEL3_CACHE_SIZE), long(1) << 20});
}

static Rate rateOf(const Profile::Command &command,
                   const ProfileReport &report) {
  if (command.seconds <= 0)
    return {};
  // Threads share a command; a stream has that of a device to itself.
  const double seconds =
      command.seconds *
      (report.profile.isOfStreams ? report.profile.numWorkers : 1);
  if (command.flops > 0)
    return {command.flops / seconds, true, report.gemmFlops};
  if (command.bytes > 0)
    return {command.bytes / seconds, false,
            report.cacheBytes == 0 || command.bytesAtOnce > cacheSize()
                ? report.memoryBytes
                : report.cacheBytes};
  return {};
}

/// "180 GFLOP/s, 71 % of GEMMs".
static std::string describe(const Rate &rate, const ProfileReport &report) {
  if (rate.value == 0)
    return "";
  const char *of = rate.isOfFlops                        ? "GEMMs"
                   : rate.attained == report.memoryBytes ? "memory"
                                                         : "caches";
  std::string text = absl::StrFormat("%.3g %s", rate.value / 1e9,
                                     rate.isOfFlops ? "GFLOP/s" : "GB/s");
  if (rate.attained > 0)
    absl::StrAppend(&text,
                    absl::StrFormat(", %.0f %% of %s",
                                    100 * rate.value / rate.attained, of));
  return text;
}

static std::string shorten(const std::string &text, size_t columns) {
  return text.size() <= columns
             ? text
             : absl::StrCat(text.substr(0, columns - 2), "..");
}

void shardc::run::printProfile(const ProfileReport &report, std::ostream &out) {
  const Profile &profile = report.profile;
  if (profile.numSteps == 0)
    return;
  auto share = [&](double seconds) {
    return absl::StrFormat("%.0f %%", 100 * seconds / profile.stepSeconds);
  };
  std::string text =
      absl::StrFormat("steps %d to %d: %s each (median)", profile.firstStep,
                      profile.lastStep, formatSeconds(profile.medianSeconds));
  if (report.estimated > 0)
    absl::StrAppend(&text, "; estimated ", formatSeconds(report.estimated),
                    " for --machine=", report.machine);
  printField("profile", text, out);
  if (profile.numSlow > 0)
    printField("",
               absl::StrCat("without ", profile.numSlow,
                            " that took more than twice as long"),
               out);
  std::vector<std::string> parts;
  for (const char *part : {"forward", "backward", "update", "communication"})
    if (auto found = profile.seconds.find(part);
        found != profile.seconds.end() && found->second > 0)
      parts.push_back(absl::StrCat(part, " ", share(found->second)));
  parts.push_back(absl::StrCat(profile.isOfStreams
                                   ? "waiting for other streams "
                                   : "waiting at barriers ",
                               share(profile.waiting)));
  parts.push_back(
      absl::StrCat("inputs, results and the rest ", share(profile.rest)));
  printField("", absl::StrJoin(parts, ", "), out);
  if (profile.hidden > 0)
    printField("",
               absl::StrCat("hidden: collectives were in flight during ",
                            share(profile.hidden), " of the time, while ",
                            profile.isOfStreams ? "devices" : "worker 0",
                            " computed"),
               out);
  std::vector<std::string> waits;
  for (double waiting : profile.waitingOfWorker)
    waits.push_back(absl::StrFormat("%.0f %%", 100 * waiting));
  printField("",
             absl::StrCat(profile.isOfStreams ? "devices" : "workers", " wait ",
                          absl::StrJoin(waits, ", ")),
             out);
  if (report.memoryBytes > 0) {
    std::string attained =
        absl::StrFormat("attained here: GEMMs %.3g GFLOP/s, memory %.3g GB/s",
                        report.gemmFlops / 1e9, report.memoryBytes / 1e9);
    if (report.cacheBytes > 0)
      absl::StrAppend(&attained, absl::StrFormat(", caches %.3g GB/s",
                                                 report.cacheBytes / 1e9));
    printField("", attained, out);
  }
  out << absl::StrFormat("  %9s %6s  %-24s %-22s %s\n", "time", "share",
                         "command", "place", "rate");
  auto printLine = [&](const Profile::Command &command) {
    std::string how = describe(rateOf(command, report), report);
    if (command.wireBytes > 0)
      how = absl::StrCat(
          formatBytes(command.wireBytes), " per device",
          command.secondsInFlight > 0
              ? absl::StrCat(", in flight ",
                             formatSeconds(command.secondsInFlight), " before")
              : "");
    // Without the folders of the model.
    std::string place = command.source.substr(command.source.rfind('/') + 1);
    out << absl::StrFormat("  %9s %6s  %-24s %-22s %s\n",
                           formatSeconds(command.seconds),
                           share(command.seconds), shorten(command.name, 24),
                           shorten(place, 22), how);
  };
  double others = 0;
  size_t number = 0;
  for (const Profile::Command &command : profile.commands)
    // Collectives are few, and people ask for them.
    if (number < numLines || command.wireBytes > 0) {
      printLine(command);
      ++number;
    } else {
      others += command.seconds;
    }
  if (others > 0)
    out << absl::StrFormat("  %9s %6s  others\n", formatSeconds(others),
                           share(others));
}

Json shardc::run::profileJson(const ProfileReport &report) {
  const Profile &profile = report.profile;
  Json json;
  json["first_step"] = profile.firstStep;
  json["last_step"] = profile.lastStep;
  json["steps"] = profile.numSteps;
  json["slow_steps"] = profile.numSlow;
  json["step_seconds"] = profile.stepSeconds;
  json["median_seconds"] = profile.medianSeconds;
  if (report.estimated > 0) {
    json["estimated_seconds"] = report.estimated;
    json["estimated_on"] = report.machine;
  }
  json["hidden_communication_seconds"] = profile.hidden;
  json["seconds"] = profile.seconds;
  json["seconds"]["waiting"] = profile.waiting;
  json["seconds"]["rest"] = profile.rest;
  json["waiting_share_of_workers"] = profile.waitingOfWorker;
  json["attained"] = Json::object();
  for (auto [name, rate] :
       {std::pair("gemm_flops_per_second", report.gemmFlops),
        {"memory_bytes_per_second", report.memoryBytes},
        {"cache_bytes_per_second", report.cacheBytes}})
    if (rate > 0)
      json["attained"][name] = rate;
  json["commands"] = Json::array();
  for (const Profile::Command &command : profile.commands) {
    Json one = {{"name", command.name},
                {"source", command.source},
                {"part", command.part},
                {"seconds", command.seconds},
                {"bytes", command.bytes},
                {"matmul_flops", command.flops},
                {"wire_bytes_per_device", command.wireBytes}};
    if (command.communicates)
      one["seconds_in_flight"] = command.secondsInFlight;
    json["commands"].push_back(one);
  }
  return json;
}
