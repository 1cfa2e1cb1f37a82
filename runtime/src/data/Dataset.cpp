//===- Dataset.cpp - What a model is trained on ---------------------------===//

#include "shardc-rt/Dataset.h"

#include "base/Convert.h"
#include "data/Batches.h"
#include "data/Npz.h"
#include "data/Random.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cmath>
#include <fstream>

using namespace shardc::rt;

/// The digits' training part; the split has a seed of its own so that every
/// run tests on the same writers' digits.
static constexpr int64_t digitsTrainRows = 1437;
static constexpr uint64_t digitsSplitSeed = 1797;

static Dataset makeQuadratic(uint64_t seed) {
  constexpr int64_t rows = 10000, features = 10;
  Dataset dataset;
  HostArray x(DType::F32, {rows, features}), y(DType::F32, {rows, 1});
  for (int64_t row = 0; row < rows; ++row) {
    float sum = 0;
    for (int64_t i = 0; i <= features; ++i) {
      auto block = randomBlock(seed, /*stream=*/1, row * (features + 1) + i);
      float value = static_cast<float>(toNormal(block[0], block[1]));
      if (i == features) {
        y.values<float>()[row] = sum + 0.1f * value;
        continue;
      }
      x.values<float>()[row * features + i] = value;
      sum += value * value;
    }
  }
  dataset.arrays.emplace("x", std::move(x));
  dataset.arrays.emplace("y", std::move(y));
  dataset.rows = rows;
  return dataset;
}

/// Rows [0, rows) of every array: the number they agree on, or an error.
static absl::Status countRows(const std::string &name, Dataset &dataset) {
  const std::string *first = nullptr;
  for (const auto &[key, array] : dataset.arrays) {
    if (array.shape.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": array \"", key,
                       "\" is a scalar, expected one row per sample"));
    if (!first) {
      first = &key;
      dataset.rows = array.shape[0];
    } else if (array.shape[0] != dataset.rows) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": array \"", key, "\" has ", array.shape[0],
                       " rows, but \"", *first, "\" has ", dataset.rows));
    }
  }
  return absl::OkStatus();
}

static absl::StatusOr<Dataset> loadDigits(const std::string &part,
                                          const DatasetOptions &options) {
  for (const std::string &dir : options.dataDirs) {
    std::string path = absl::StrCat(dir, "/digits.npz");
    if (!std::ifstream(path))
      continue;
    absl::StatusOr<ArrayMap> arrays = readNpz(path);
    if (!arrays.ok())
      return arrays.status();
    Dataset all;
    all.arrays = *std::move(arrays);
    if (absl::Status status = countRows(path, all); !status.ok())
      return status;
    if (all.rows <= digitsTrainRows)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": ", all.rows, " rows, expected more than ", digitsTrainRows));
    std::vector<int64_t> order =
        shuffledRows(all.rows, digitsSplitSeed, /*epoch=*/0);
    bool train = part == "train";
    int64_t begin = train ? 0 : digitsTrainRows;
    int64_t rows = train ? digitsTrainRows : all.rows - digitsTrainRows;
    Dataset dataset;
    dataset.arrays = gatherBatch(all, order, begin, rows).arrays;
    dataset.rows = rows;
    return dataset;
  }
  return absl::NotFoundError(
      absl::StrCat("the data set digits is not installed: no digits.npz in ",
                   absl::StrJoin(options.dataDirs, ", ")));
}

absl::StatusOr<Dataset> shardc::rt::loadDataset(const std::string &spec,
                                                const DatasetOptions &options) {
  absl::StatusOr<Dataset> dataset = Dataset();
  if (spec == "synthetic:quadratic") {
    dataset = makeQuadratic(options.seed);
  } else if (spec == "digits" || spec == "digits:train") {
    dataset = loadDigits("train", options);
  } else if (spec == "digits:test") {
    dataset = loadDigits("test", options);
  } else if (absl::EndsWith(spec, ".npz")) {
    absl::StatusOr<ArrayMap> arrays = readNpz(spec);
    if (!arrays.ok())
      return arrays.status();
    dataset->arrays = *std::move(arrays);
    if (absl::Status status = countRows(spec, *dataset); !status.ok())
      return status;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown data \"", spec,
                     "\": expected FILE.npz, synthetic:quadratic, digits, "
                     "digits:train or digits:test"));
  }
  if (dataset.ok())
    dataset->name = spec;
  return dataset;
}

template <typename T>
static absl::Status checkFinite(const HostArray &array, int64_t rowSize,
                                const std::string &what) {
  absl::Span<const T> values = array.values<T>();
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": row ", i / rowSize, " holds ", values[i],
                       ", expected finite numbers"));
  return absl::OkStatus();
}

template <typename T>
static absl::Status checkLabels(const HostArray &array, int64_t classes,
                                int64_t rowSize, const std::string &what) {
  absl::Span<const T> values = array.values<T>();
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0 || values[i] >= classes)
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": row ", i / rowSize, " has label ", values[i],
                       ", expected 0 to ", classes - 1));
  return absl::OkStatus();
}

static absl::Status checkValues(const TensorInfo &tensor,
                                const HostArray &array,
                                const std::string &what) {
  int64_t rowSize =
      std::max<int64_t>(1, numElements(absl::MakeSpan(array.shape).subspan(1)));
  if (array.dtype == DType::F32)
    return checkFinite<float>(array, rowSize, what);
  if (array.dtype == DType::F64)
    return checkFinite<double>(array, rowSize, what);
  if (tensor.labelClasses > 0 && array.dtype == DType::I32)
    return checkLabels<int32_t>(array, tensor.labelClasses, rowSize, what);
  if (tensor.labelClasses > 0 && array.dtype == DType::I64)
    return checkLabels<int64_t>(array, tensor.labelClasses, rowSize, what);
  return absl::OkStatus();
}

absl::Status shardc::rt::fitToPlan(const Plan &plan, Dataset &dataset) {
  ArrayMap fitting;
  for (const TensorInfo &tensor : plan.tensors()) {
    if (tensor.role != Role::Input && tensor.role != Role::Label)
      continue;
    std::string what =
        absl::StrCat(dataset.name, ", array \"", tensor.name, "\"");
    auto found = dataset.arrays.find(tensor.name);
    if (found == dataset.arrays.end()) {
      std::vector<std::string> names;
      for (const auto &[name, array] : dataset.arrays)
        names.push_back(name);
      return absl::InvalidArgumentError(absl::StrCat(
          dataset.name, ": array \"", tensor.name,
          "\" is missing; the model's ", toString(tensor.role), " is ",
          describe(tensor.dtype, tensor.shape), ", the data has ",
          names.empty() ? "no arrays" : absl::StrJoin(names, ", ")));
    }
    HostArray &array = found->second;
    // Floats to floats, integers to integers; anything else is an error below.
    if (isFloat(array.dtype) == isFloat(tensor.dtype) &&
        array.dtype != DType::Bool && tensor.dtype != DType::Bool) {
      if (absl::Status status = checkValues(tensor, array, what); !status.ok())
        return status;
      absl::StatusOr<HostArray> converted = convert(array, tensor.dtype);
      if (!converted.ok())
        return absl::InvalidArgumentError(
            absl::StrCat(what, ": ", converted.status().message()));
      array = *std::move(converted);
    }
    // All but the number of rows is the model's.
    std::vector<int64_t> expected = tensor.shape;
    if (!expected.empty() && !array.shape.empty())
      expected[0] = array.shape[0];
    if (array.dtype != tensor.dtype || array.shape != expected)
      return absl::InvalidArgumentError(
          absl::StrCat(what, " is ", describe(array.dtype, array.shape),
                       ", but the model's ", toString(tensor.role), " is ",
                       describe(tensor.dtype, tensor.shape),
                       " (the rows of a batch first)"));
    fitting.emplace(tensor.name, std::move(array));
  }
  dataset.arrays = std::move(fitting);
  return absl::OkStatus();
}
