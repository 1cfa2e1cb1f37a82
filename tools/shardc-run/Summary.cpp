//===- Summary.cpp - The results of a run ---------------------------------===//

#include "Summary.h"

#include "Signals.h"

#include "plan/PlanSpec.h"
#include "train/Format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace shardc::run;
using namespace shardc::rt;

using Json = nlohmann::ordered_json;

/// Adds the results of an evaluation, under keys that begin with `prefix`.
static void addEvaluation(const Evaluation &evaluation,
                          const std::string &prefix, Json &json) {
  json[prefix + "rows"] = evaluation.rows;
  json[prefix + "loss"] = evaluation.loss;
  if (evaluation.correct >= 0)
    json[prefix + "accuracy"] = double(evaluation.correct) / evaluation.rows;
}

/// Numbers that are not finite are null.
static Json toJson(const ReferenceResult &result) {
  Json json;
  json["verdict"] = toString(result.verdict);
  json["steps"] = result.steps;
  json["segments"] = result.segments;
  json["sensitive_segments"] = result.sensitiveSegments;
  json["replayed_segments"] = result.replayedSegments;
  json["first_step"] = result.firstStep;
  json["last_step"] = result.lastStep;
  json["loss_difference"] = result.distance.loss;
  json["loss_allowed"] = result.limits.loss;
  json["parameter_difference"] = result.distance.parameters;
  json["parameter_allowed"] = result.limits.parameters;
  if (result.isHalf) {
    json["change_difference"] = result.distance.ofChange;
    json["change_allowed"] = result.limits.ofChange;
  }
  if (!result.excess.empty())
    json["excess"] = result.excess;
  return json;
}

/// The compile options that were given to a model.
static void addOptions(const Arguments &arguments, Json &json) {
  if (arguments.given.empty())
    return;
  Json options;
  for (const shardc::CompileOption *option : arguments.given)
    std::visit([&](const auto &value) { options[option->name] = value; },
               getJsonValue(*option, arguments.compile));
  json["compile_options"] = options;
}

static void addTraining(const TrainSummary &training, Json &json) {
  json["steps"] = training.steps;
  if (training.firstStep)
    json["resumed_after_step"] = training.firstStep;
  json["first_loss"] = training.steps ? Json(training.firstLoss) : Json();
  json["final_loss"] = training.steps ? Json(training.finalLoss) : Json();
  json["epoch_losses"] = Json::array();
  json["epoch_seconds"] = Json::array();
  for (const EpochSummary &epoch : training.epochs) {
    json["epoch_losses"].push_back(epoch.meanLoss);
    json["epoch_seconds"].push_back(epoch.seconds);
  }
  json["seconds"] = training.seconds;
  json["samples_per_s"] = training.samplesPerSecond;
  json["communication_share"] = training.communicationShare;
  json["wire_bytes_per_step"] = training.wireBytesPerStep;
  if (const std::optional<PipelineBubble> &bubble = training.bubble)
    json["pipeline"] = {
        {"predicted_bubble", bubble->predicted},
        {"predicted_makespan_seconds", bubble->predictedSeconds},
        {"measured_bubble", bubble->measured},
        {"measured_makespan_seconds", bubble->measuredSeconds}};
}

void shardc::run::printJsonSummary(const Executor &executor,
                                   const RunSummary &summary,
                                   const Arguments &arguments,
                                   std::ostream &out) {
  const Plan &plan = executor.plan();
  Json json;
  json["model"] = plan.model();
  json["mesh"] = plan.mesh();
  addOptions(arguments, json);
  if (summary.training)
    addTraining(*summary.training, json);
  if (!summary.error.empty())
    json["error"] = summary.error;
  json["peak_bytes_per_device"] = plan.arenaBytes();
  json["allocated_bytes"] = executor.allocatedBytes();
  json["scratch_bytes_per_device"] = executor.scratchBytesPerDevice();
  for (const RunSummary::EpochEvaluation &each : summary.evaluations) {
    Json evaluation;
    evaluation["epoch"] = each.epoch;
    addEvaluation(each.evaluation, "", evaluation);
    json["evaluations"].push_back(evaluation);
  }
  if (summary.evaluation)
    addEvaluation(*summary.evaluation, "eval_", json);
  if (const auto &prediction = summary.prediction)
    json["prediction"] = {{"path", prediction->path},
                          {"dtype", std::string(toString(prediction->dtype))},
                          {"shape", prediction->shape}};
  if (summary.reference)
    json["reference"] = toJson(*summary.reference);
  if (summary.profile)
    json["profile"] = profileJson(*summary.profile);
  if (const auto &checkpoint = summary.checkpoint)
    json["checkpoint"] = {{"written", checkpoint->written},
                          {"step", checkpoint->step},
                          {"path", checkpoint->path},
                          {"copy_seconds", checkpoint->copySeconds}};
  if (summary.stoppedBy)
    json["stopped_by"] = signalName(summary.stoppedBy);
  out << json.dump(2) << "\n";
}

void shardc::run::printJsonPlan(const Plan &plan, const std::string &devices,
                                const Arguments &arguments, std::ostream &out) {
  Json json;
  json["model"] = plan.model();
  json["mesh"] = plan.mesh();
  addOptions(arguments, json);
  json["devices"] = devices;
  json["batch_size"] = plan.batchSize();
  int64_t parameters = 0;
  for (const TensorInfo &tensor : plan.tensors())
    if (tensor.role == Role::Parameter)
      parameters += numElements(tensor.shape);
  json["parameters"] = parameters;
  json["peak_bytes_per_device"] = plan.arenaBytes();
  json["memory"] = Json::object();
  for (const MemoryReport::Entry &entry : plan.spec().memory.entries)
    json["memory"][std::string(rt::toString(entry.kind))] = entry.bytes;
  if (const ProgramSpec *program = plan.spec().findProgram("train_step")) {
    json["wire_bytes_per_step"] = program->wireBytes;
    json["collectives_per_step"] = program->collectives.size();
  }
  out << json.dump(2) << "\n";
}

std::string shardc::run::describe(const Evaluation &evaluation) {
  std::string text = absl::StrFormat("loss %.6g", evaluation.loss);
  if (evaluation.correct >= 0)
    absl::StrAppendFormat(&text, ", accuracy %.2f %% (%d of %d)",
                          100.0 * evaluation.correct / evaluation.rows,
                          evaluation.correct, evaluation.rows);
  else
    absl::StrAppendFormat(&text, " over %d rows", evaluation.rows);
  return text;
}

void shardc::run::printSummary(const RunSummary &summary, std::ostream &out) {
  if (summary.evaluation)
    printField("evaluation", describe(*summary.evaluation), out);
  if (const auto &prediction = summary.prediction)
    printField("prediction",
               absl::StrCat(describe(prediction->dtype, prediction->shape),
                            " in ", prediction->path),
               out);
  if (summary.training) {
    const TrainSummary &training = *summary.training;
    std::string text = absl::StrFormat(
        "%d steps%s in %.3g s, loss %.6g -> %.6g, %.0f "
        "samples/s",
        training.steps - training.firstStep,
        training.firstStep ? absl::StrCat(" after ", training.firstStep) : "",
        training.seconds, training.firstLoss, training.finalLoss,
        training.samplesPerSecond);
    if (training.steps == training.firstStep)
      text = training.firstStep
                 ? absl::StrCat("no step after ", training.firstStep)
                 : "no step";
    else if (!std::isnan(training.communicationShare))
      absl::StrAppendFormat(&text, ", communication %.0f %% of the time",
                            100 * training.communicationShare);
    printField("done", text, out);
    if (const std::optional<PipelineBubble> &bubble = training.bubble)
      printField("bubble",
                 absl::StrFormat("%.1f %% predicted; %.1f %% with the measured "
                                 "durations, replayed on a clock for each "
                                 "rank of the pipeline",
                                 100 * bubble->predicted,
                                 100 * bubble->measured),
                 out);
  }
  if (const auto &checkpoint = summary.checkpoint)
    printField("checkpoints",
               checkpoint->written == 0
                   ? "none written"
                   : absl::StrCat(checkpoint->written, " written, the last ",
                                  checkpoint->path, "; each copy took ",
                                  formatSeconds(checkpoint->copySeconds),
                                  " at most"),
               out);
  if (summary.reference)
    print(*summary.reference, out);
  if (summary.profile)
    printProfile(*summary.profile, out);
}

void InitializationProgress::operator()(int64_t done, int64_t elements) {
  Clock::time_point now = Clock::now();
  bool isEnd = done == elements;
  std::chrono::milliseconds pause(isDrawn && isTerminal ? 100
                                  : isTerminal          ? 1000
                                                        : 5000);
  if (isEnd ? !(isDrawn && isTerminal) : now - last < pause)
    return;
  std::string text =
      absl::StrFormat("parameters     %.0f %% have initial values",
                      100.0 * done / std::max<int64_t>(1, elements));
  if (isTerminal)
    *out << "\r" << (isEnd ? "" : text) << "\x1b[K" << std::flush;
  else
    *out << text << "\n";
  isDrawn = true;
  last = now;
}
