//===- Predict.cpp - The outputs of the network for a data set ------------===//

#include "shardc-rt/Trainer.h"

#include "base/ArrayBytes.h"
#include "base/Convert.h"
#include "data/Batches.h"
#include "plan/PlanSpec.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

/// The result of "predict", which has a row for each one of the batch.
static absl::StatusOr<ResultInfo> findPrediction(const Plan &plan) {
  const ProgramInfo *program = plan.findProgram("predict");
  if (!program)
    return missingProgram(plan.spec(), "predict");
  for (const ResultInfo &result : program->results)
    if (result.name == "prediction" && !result.shape.empty() &&
        result.shape[0] == plan.batchSize())
      return result;
  return absl::InvalidArgumentError(
      absl::StrCat("the program \"predict\" has no result \"prediction\" with ",
                   plan.batchSize(), " rows"));
}

absl::StatusOr<HostArray>
shardc::rt::predict(Executor &executor, const Dataset &dataset,
                    const std::function<bool()> &shouldStop) {
  absl::StatusOr<ResultInfo> prediction = findPrediction(executor.plan());
  if (!prediction.ok())
    return prediction.status();
  int64_t batchSize = executor.plan().batchSize();
  if (batchSize < 1 || dataset.rows < 1)
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, " has no rows to predict for"));
  if (absl::Status status = checkRows(dataset); !status.ok())
    return status;
  std::vector<int64_t> shape = prediction->shape;
  shape[0] = dataset.rows;
  HostArray outputs(prediction->dtype, shape);
  int64_t rowBytes = outputs.data.size() / dataset.rows;
  const std::vector<int64_t> order =
      orderOfRows(dataset.rows, /*seed=*/0, /*shuffle=*/false, /*epoch=*/0);
  const RowsOfBatch taken = rowsOf(executor);
  Batch batch;
  for (int64_t begin = 0; begin < dataset.rows; begin += batchSize) {
    if (shouldStop && shouldStop())
      return absl::CancelledError("the prediction was stopped");
    if (absl::Status status =
            gatherBatch(dataset, order, begin, batchSize, taken, batch);
        !status.ok())
      return status;
    absl::StatusOr<RunResult> result = executor.run("predict", batch.views());
    if (!result.ok())
      return result.status();
    std::memcpy(outputs.data.data() + begin * rowBytes,
                result->find("prediction")->data.data(),
                batch.validRows * rowBytes);
  }
  // NumPy has no bf16; f32 holds it exactly.
  if (outputs.dtype == DType::BF16)
    return convert(outputs, DType::F32);
  return outputs;
}

absl::StatusOr<HostArray> shardc::rt::predict(Executor &executor,
                                              const NamedArrays &arrays) {
  const Plan &plan = executor.plan();
  Dataset dataset;
  for (const auto &[name, view] : arrays) {
    const TensorInfo *tensor = plan.findTensor(name);
    if (!tensor || (tensor->role != Role::Input && tensor->role != Role::Label))
      return absl::InvalidArgumentError(
          absl::StrCat("the plan has no input or label \"", name, "\""));
    absl::StatusOr<int64_t> bytes = bytesOf(view.dtype, view.shape);
    if (!bytes.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("array \"", name, "\" ", bytes.status().message()));
    if (!view.data && *bytes > 0)
      return absl::InvalidArgumentError(
          absl::StrCat("array \"", name, "\" is ",
                       describe(view.dtype, view.shape), " without data"));
    dataset.arrays.emplace(name, view);
  }
  absl::Status status = fitToPlan(plan, dataset, "predict");
  return status.ok() ? predict(executor, dataset)
                     : absl::StatusOr<HostArray>(status);
}
