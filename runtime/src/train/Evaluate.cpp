//===- Evaluate.cpp - The loss of a data set ------------------------------===//
//
// All rows count, whatever the batch size b. Where the program gives the loss
// of each row, rows that fill up the last batch are not added. Where it gives
// the mean over the batch alone, t < b rows are taken q = b / t times each, and
// the batch is filled up with r = b - q·t of them: then its mean is
// (q·t·mean(t rows) + r·mean(r rows)) / b, and the mean of the r rows is found
// the same way. Since r is less than half of b and less than t, a few runs
// suffice.
//
// This holds for a loss that is a mean over rows, plus terms that do not depend
// on them. It is checked by finding the mean with other r rows.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Trainer.h"

#include "base/Convert.h"
#include "data/Batches.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace shardc::rt;

namespace {
/// One call of `evaluate`.
class Evaluating {
public:
  Evaluating(Executor &executor, const Dataset &dataset,
             const ProgramInfo &program, std::function<bool()> shouldStop)
      : executor(executor), dataset(dataset), shouldStop(std::move(shouldStop)),
        batchSize(executor.plan().batchSize()), taken(rowsOf(executor)) {
    for (const ResultInfo &result : program.results) {
      perExample |= result.name == "per_example_loss";
      countsCorrect |= result.name == "correct";
      isHalf |= result.name == "loss" && result.dtype == DType::BF16;
    }
  }

  absl::StatusOr<Evaluation> run();
  absl::Status check();

private:
  std::vector<int64_t> lastRows() const;
  absl::StatusOr<RunResult> runOn(const std::vector<int64_t> &rows);
  absl::StatusOr<double> meanOf(const std::vector<int64_t> &rows,
                                bool fillFromEnd);
  absl::StatusOr<double> checkedMeanOf(const std::vector<int64_t> &rows);

  Executor &executor;
  const Dataset &dataset;
  std::function<bool()> shouldStop;
  int64_t batchSize;
  RowsOfBatch taken;
  Batch batch;             ///< The one of the last run.
  bool perExample = false; ///< The program gives the loss of each row.
  bool countsCorrect = false;
  bool isHalf = false; ///< The loss is of bf16.
};
} // namespace

/// Runs the program on a batch of `rows`; their last one fills it up.
absl::StatusOr<RunResult> Evaluating::runOn(const std::vector<int64_t> &rows) {
  if (shouldStop && shouldStop())
    return absl::CancelledError("the evaluation was stopped");
  if (absl::Status status =
          gatherBatch(dataset, rows, 0, batchSize, taken, batch);
      !status.ok())
    return status;
  return executor.run("evaluate", batch.views());
}

/// The mean loss of `rows`, at most as many as a batch has. The first of them,
/// or the last, fill up a batch.
absl::StatusOr<double> Evaluating::meanOf(const std::vector<int64_t> &rows,
                                          bool fillFromEnd) {
  int64_t count = rows.size(), times = batchSize / count,
          rest = batchSize - times * count;
  std::vector<int64_t> batch, filling;
  for (int64_t i = 0; i < times; ++i)
    batch.insert(batch.end(), rows.begin(), rows.end());
  auto first = fillFromEnd ? rows.end() - rest : rows.begin();
  filling.assign(first, first + rest);
  batch.insert(batch.end(), filling.begin(), filling.end());
  absl::StatusOr<RunResult> result = runOn(batch);
  if (!result.ok())
    return result.status();
  if (rest == 0)
    return result->loss;
  absl::StatusOr<double> mean = meanOf(filling, fillFromEnd);
  if (!mean.ok())
    return mean.status();
  return (batchSize * result->loss - rest * *mean) / (times * count);
}

absl::StatusOr<double>
Evaluating::checkedMeanOf(const std::vector<int64_t> &rows) {
  absl::StatusOr<double> mean = meanOf(rows, /*fillFromEnd=*/false);
  if (!mean.ok() || batchSize % rows.size() == 0)
    return mean;
  absl::StatusOr<double> other = meanOf(rows, /*fillFromEnd=*/true);
  if (!other.ok())
    return other;
  // A bound of rounding errors, with a margin.
  double tolerance = isHalf ? 0x1p-6 : 1e-4;
  double scale = std::max(std::fabs(*mean), std::fabs(*other));
  if (std::fabs(*mean - *other) > tolerance * scale)
    return absl::InvalidArgumentError(absl::StrCat(
        dataset.name, " has ", dataset.rows, " rows: ", rows.size(),
        " of them do not fill a batch of ", batchSize,
        ", and the loss of fewer rows cannot be told, since it is no mean over "
        "rows (it would be ",
        *mean, " or ", *other, "); expected a multiple of the batch size"));
  return mean;
}

/// The rows that do not fill a batch.
std::vector<int64_t> Evaluating::lastRows() const {
  std::vector<int64_t> rows(dataset.rows % batchSize);
  std::iota(rows.begin(), rows.end(), dataset.rows - rows.size());
  return rows;
}

absl::Status Evaluating::check() {
  std::vector<int64_t> last = lastRows();
  return perExample || last.empty() ? absl::OkStatus()
                                    : checkedMeanOf(last).status();
}

absl::StatusOr<Evaluation> Evaluating::run() {
  Evaluation evaluation;
  evaluation.rows = dataset.rows;
  evaluation.correct = countsCorrect ? 0 : -1;
  double sum = 0;
  for (int64_t begin = 0; begin < dataset.rows; begin += batchSize) {
    int64_t count = std::min(batchSize, dataset.rows - begin);
    if (!perExample && count < batchSize) {
      absl::StatusOr<double> mean = checkedMeanOf(lastRows());
      if (!mean.ok())
        return mean.status();
      sum += *mean * count;
      continue;
    }
    std::vector<int64_t> rows(count);
    std::iota(rows.begin(), rows.end(), begin);
    absl::StatusOr<RunResult> result = runOn(rows);
    if (!result.ok())
      return result.status();
    if (!perExample) {
      sum += result->loss * count;
      continue;
    }
    for (int64_t row = 0; row < count; ++row) {
      sum += numberAt(*result->find("per_example_loss"), row);
      if (countsCorrect)
        evaluation.correct += integerAt(*result->find("correct"), row);
    }
  }
  evaluation.loss = sum / dataset.rows;
  return evaluation;
}

static absl::StatusOr<Evaluating>
prepare(Executor &executor, const Dataset &dataset,
        const std::function<bool()> &shouldStop) {
  const Plan &plan = executor.plan();
  const ProgramInfo *program = plan.findProgram("evaluate");
  if (!program)
    return absl::NotFoundError("the plan has no evaluation program");
  if (plan.batchSize() < 1 || dataset.rows < 1)
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, " has no rows to evaluate on"));
  if (absl::Status status = checkRows(dataset); !status.ok())
    return status;
  return Evaluating(executor, dataset, *program, shouldStop);
}

absl::StatusOr<Evaluation>
shardc::rt::evaluate(Executor &executor, const Dataset &dataset,
                     const std::function<bool()> &shouldStop) {
  absl::StatusOr<Evaluating> evaluating =
      prepare(executor, dataset, shouldStop);
  return evaluating.ok() ? evaluating->run() : evaluating.status();
}

absl::Status shardc::rt::checkEvaluation(Executor &executor,
                                         const Dataset &dataset) {
  absl::StatusOr<Evaluating> evaluating = prepare(executor, dataset, {});
  return evaluating.ok() ? evaluating->check() : evaluating.status();
}
