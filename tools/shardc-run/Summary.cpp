//===- Summary.cpp - What a run ends with ---------------------------------===//

#include "Summary.h"

#include "absl/strings/str_format.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace shardc::run;
using namespace shardc::rt;

void shardc::run::printJsonSummary(const Executor &executor,
                                   const TrainSummary &summary,
                                   const std::optional<Evaluation> &evaluation,
                                   std::ostream &out) {
  const Plan &plan = executor.plan();
  nlohmann::ordered_json json;
  json["model"] = plan.model();
  json["mesh"] = plan.mesh();
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
  json["peak_bytes_per_device"] = plan.arenaBytes();
  json["allocated_bytes"] = executor.allocatedBytes();
  json["scratch_bytes_per_device"] = executor.scratchBytesPerDevice();
  if (evaluation) {
    json["eval_rows"] = evaluation->rows;
    json["eval_loss"] = evaluation->loss;
    if (evaluation->correct >= 0)
      json["eval_accuracy"] = double(evaluation->correct) / evaluation->rows;
  }
  out << json.dump(2) << "\n";
}

void shardc::run::printSummary(const TrainSummary &summary,
                               const std::optional<Evaluation> &evaluation,
                               std::ostream &out) {
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
