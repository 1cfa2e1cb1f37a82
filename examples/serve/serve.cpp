//===- serve.cpp - Predictions inside of a host application ---------------===//
//
//   serve PLAN.shardc PARAMETERS [DATA]
//
// Loads a plan and what was trained: a folder of checkpoints, of which the
// latest is taken, or a file .npz or .safetensors. Prints a line for each row
// of DATA (FILE.npz, FILE.csv, ...). Without DATA it reads rows of the model's
// one input from standard input, a line of numbers each. A request is one or
// more lines, up to the plan's batch size, and ends with an empty line; so does
// the answer. A request that is wrong is answered by an error, and the next one
// by predictions again.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Checkpoint.h"
#include "shardc-rt/Context.h"
#include "shardc-rt/Dataset.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Plan.h"
#include "shardc-rt/Trainer.h"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace shardc::rt;

static int fail(const absl::Status &status) {
  std::fprintf(stderr, "serve: %s\n", status.ToString().c_str());
  return 2;
}

/// Sets the parameters of `executor` from a folder of checkpoints or a file.
static absl::Status load(Executor &executor, const std::string &path) {
  if (std::filesystem::is_directory(path))
    return loadLatestCheckpoint(path, executor).status();
  // States have values too, though a prediction uses none.
  if (auto status = executor.initializeParameters(); !status.ok())
    return status;
  return loadParameters(executor, path);
}

/// Prints the predictions for all rows of `data`, whatever their number.
static absl::Status answer(Executor &executor, Dataset &data) {
  if (auto status = fitToPlan(executor.plan(), data, "predict"); !status.ok())
    return status;
  auto predictions = predict(executor, data);
  if (!predictions.ok())
    return predictions.status();
  // Outputs of models that compute in f64 are rare, and left out here.
  if (predictions->dtype != DType::F32)
    return absl::UnimplementedError("expected a model with outputs of f32");
  auto values = predictions->values<float>();
  size_t columns = values.size() / data.rows;
  for (size_t i = 0; i < values.size(); ++i)
    std::printf("%.9g%c", values[i], (i + 1) % columns ? ' ' : '\n');
  return absl::OkStatus();
}

/// The rows of `lines` as the input `tensor`.
static absl::StatusOr<Dataset> parse(const std::vector<std::string> &lines,
                                     const TensorInfo &tensor) {
  std::vector<int64_t> shape = tensor.shape;
  shape[0] = lines.size();
  HostArray rows(DType::F32, shape);
  auto values = rows.values<float>();
  size_t columns = values.size() / lines.size(), at = 0;
  for (const std::string &line : lines) {
    std::istringstream numbers(line);
    size_t end = at + columns;
    while (at < end && numbers >> values[at])
      ++at;
    if (at < end || !(numbers >> std::ws).eof())
      return absl::InvalidArgumentError("expected " + std::to_string(columns) +
                                        " numbers in a row, found \"" + line +
                                        "\"");
  }
  Dataset data;
  data.name = "request";
  data.arrays.emplace(tensor.name, std::move(rows));
  return data;
}

/// Answers requests until standard input ends.
static absl::Status serve(Executor &executor) {
  const Plan &plan = executor.plan();
  const ProgramInfo *program = plan.findProgram("predict");
  if (!program || program->inputs.size() != 1)
    return absl::NotFoundError(program ? "expected a model with one input"
                                       : "the plan makes no predictions: " +
                                             plan.noPrediction());
  const TensorInfo &tensor = *plan.findTensor(program->inputs[0]);
  std::vector<std::string> lines;
  bool isOpen = true;
  while (isOpen) {
    std::string line;
    isOpen = static_cast<bool>(std::getline(std::cin, line));
    if (!line.empty())
      lines.push_back(line);
    bool isFull = static_cast<int64_t>(lines.size()) == plan.batchSize();
    if (lines.empty() || (!line.empty() && !isFull))
      continue;
    auto data = parse(lines, tensor);
    absl::Status status = data.ok() ? answer(executor, *data) : data.status();
    if (!status.ok())
      std::printf("error: %s\n", std::string(status.message()).c_str());
    std::printf("\n");
    std::fflush(stdout);
    lines.clear();
  }
  return absl::OkStatus();
}

int main(int argc, char **argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: serve PLAN.shardc PARAMETERS [DATA]\n");
    return 1;
  }
  auto plan = Plan::loadFile(argv[1]);
  if (!plan.ok())
    return fail(plan.status());
  auto context = Context::create();
  if (!context.ok())
    return fail(context.status());
  auto executor = Executor::create(**context, *plan);
  if (!executor.ok())
    return fail(executor.status());
  if (auto status = load(**executor, argv[2]); !status.ok())
    return fail(status);
  absl::Status status;
  if (argc == 4) {
    auto data = loadDataset(argv[3], {});
    status = data.ok() ? answer(**executor, *data) : data.status();
  } else {
    status = serve(**executor);
  }
  return status.ok() ? 0 : fail(status);
}
