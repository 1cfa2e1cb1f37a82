//===- FitToPlan.cpp - The arrays that a plan's inputs are ----------------===//

#include "shardc-rt/Dataset.h"

#include "base/ArrayBytes.h"
#include "base/Convert.h"
#include "data/FitRows.h"
#include "data/RowReader.h"
#include "plan/PlanSpec.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

using namespace shardc::rt;

namespace {
/// An input or label as the data has it, which is in memory or in a file.
struct Fitted {
  HostArray array;
  std::shared_ptr<const RowReader> reader; ///< Null: it is in memory.

  DType dtype() const { return reader ? reader->dtype() : array.dtype; }
  const std::vector<int64_t> &shape() const {
    return reader ? reader->shape() : array.shape;
  }
};

/// One input or label that an array of the data has to fit.
class Fitting {
public:
  /// `given` has the names of all arrays of the data.
  Fitting(const TensorInfo &tensor, bool isWhole,
          const std::vector<std::string> &given, Dataset &dataset)
      : tensor(tensor), isWhole(isWhole), given(given), dataset(dataset),
        what(absl::StrCat(dataset.name, ", array \"", tensor.name, "\"")),
        rows(tensor, what) {}

  /// Takes the needed arrays out of the data, and notes conversions.
  absl::StatusOr<Fitted> fit(std::vector<std::string> &converted);

private:
  absl::StatusOr<Fitted> take();
  absl::StatusOr<HostArray> takeColumns(int64_t first);
  absl::Status readColumns(int64_t first);
  absl::StatusOr<std::vector<int64_t>> fitShape(const Fitted &found) const;
  void warnIfWhole(const std::string &array);

  const TensorInfo &tensor;
  bool isWhole; ///< Has no rows of the batch.
  const std::vector<std::string> &given;
  Dataset &dataset;
  std::string what;
  RowFit rows;
  std::string storage;    ///< The stored type.
  bool isText = false;    ///< As decimal numbers, which have no type.
  bool isRounded = false; ///< By the conversion to the model's type.
};
} // namespace

/// Warns of an array that has more rows in memory than are needed.
void Fitting::warnIfWhole(const std::string &array) {
  if (auto found = dataset.readWhole.find(array);
      found != dataset.readWhole.end())
    dataset.warnings.push_back(absl::StrCat(
        dataset.name, ": each process reads all of array \"", array,
        "\" and drops the rows of others, since ", found->second,
        "; of arrays as numpy.save and numpy.savez write them it reads its own "
        "rows alone"));
}

/// Reads columns that are in a file; there are many of them in one row.
absl::Status Fitting::readColumns(int64_t first) {
  for (int64_t number = first;; ++number) {
    std::string name = absl::StrCat(tensor.name, number);
    auto found = dataset.inFile.find(name);
    if (found == dataset.inFile.end())
      return absl::OkStatus();
    absl::StatusOr<HostArray> array = found->second->readAll();
    if (!array.ok())
      return array.status();
    dataset.arrays.emplace(name, *std::move(array));
    dataset.readWhole.emplace(name, "it is one of several columns");
    dataset.inFile.erase(found);
  }
}

/// Assembles an array from one array per column, of which `first` exists.
absl::StatusOr<HostArray> Fitting::takeColumns(int64_t first) {
  warnIfWhole(absl::StrCat(tensor.name, first));
  std::vector<HostArray> columns;
  bool isIntegral = true;
  for (int64_t number = first;; ++number) {
    auto found = dataset.arrays.find(absl::StrCat(tensor.name, number));
    if (found == dataset.arrays.end() || found->second.shape.size() != 1)
      break;
    columns.push_back(std::move(found->second));
    dataset.arrays.erase(found);
    if (columns.back().shape != columns.front().shape)
      return absl::InvalidArgumentError(absl::StrCat(
          dataset.name, ": array \"", tensor.name, number, "\" has ",
          columns.back().shape[0], " rows, but \"", tensor.name, first,
          "\" has ", columns.front().shape[0]));
    isIntegral &= !isFloat(columns.back().dtype);
  }
  int64_t rows = columns.front().shape[0], count = columns.size();
  DType dtype = isIntegral ? DType::I64 : DType::F64;
  HostArray array(dtype, {rows, count});
  for (int64_t column = 0; column < count; ++column)
    for (int64_t row = 0; row < rows; ++row) {
      int64_t to = row * count + column;
      const HostArray &from = columns[column];
      if (isIntegral)
        array.values<int64_t>()[to] = integerAt(from, row);
      else
        array.values<double>()[to] = numberAt(from, row);
    }
  storage = absl::StrCat("columns ", tensor.name, first, " to ", tensor.name,
                         first + count - 1);
  isText = true;
  return array;
}

/// The array of this name, or made of columns.
absl::StatusOr<Fitted> Fitting::take() {
  if (auto found = dataset.inFile.find(tensor.name);
      found != dataset.inFile.end()) {
    Fitted fitted{{}, found->second};
    dataset.inFile.erase(found);
    storage = fitted.reader->storage();
    if (storage.empty())
      storage = std::string(toString(fitted.dtype()));
    return fitted;
  }
  if (auto found = dataset.arrays.find(tensor.name);
      found != dataset.arrays.end()) {
    warnIfWhole(tensor.name);
    Fitted fitted{std::move(found->second), nullptr};
    dataset.arrays.erase(found);
    auto stored = dataset.storage.find(tensor.name);
    storage = stored == dataset.storage.end()
                  ? std::string(toString(fitted.dtype()))
                  : stored->second;
    isText = storage == "text";
    return fitted;
  }
  if (auto found = dataset.unreadable.find(tensor.name);
      found != dataset.unreadable.end())
    return found->second;
  for (int64_t first : {0, 1}) {
    if (absl::Status status = readColumns(first); !status.ok())
      return status;
    if (auto found = dataset.arrays.find(absl::StrCat(tensor.name, first));
        found != dataset.arrays.end() && found->second.shape.size() == 1) {
      absl::StatusOr<HostArray> array = takeColumns(first);
      return array.ok() ? absl::StatusOr<Fitted>({*std::move(array), nullptr})
                        : array.status();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(dataset.name, ": array \"", tensor.name,
                   "\" is missing; the model's ", toString(tensor.role), " is ",
                   describe(tensor.dtype, tensor.shape), ", the data has ",
                   given.empty() ? "no arrays" : absl::StrJoin(given, ", ")));
}

/// Type and shape are those of the model, except for the number of rows;
/// dimensions of size 1 are ignored. Returns the model's shape with that
/// number.
absl::StatusOr<std::vector<int64_t>>
Fitting::fitShape(const Fitted &found) const {
  std::vector<int64_t> expected = tensor.shape;
  if (!isWhole && !expected.empty() && !found.shape().empty())
    expected[0] = found.shape()[0];
  auto withoutOnes = [](std::vector<int64_t> shape) {
    if (!shape.empty())
      shape.erase(std::remove(shape.begin() + 1, shape.end(), 1), shape.end());
    return shape;
  };
  if (!rows.takes(found.dtype()) ||
      withoutOnes(found.shape()) != withoutOnes(expected))
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", describe(found.dtype(), found.shape()),
                     ", but the model's ", toString(tensor.role), " is ",
                     describe(tensor.dtype, tensor.shape),
                     isWhole ? "" : " (the rows of a batch first)"));
  return expected;
}

absl::StatusOr<Fitted> Fitting::fit(std::vector<std::string> &converted) {
  absl::StatusOr<Fitted> found = take();
  if (!found.ok())
    return found;
  absl::StatusOr<std::vector<int64_t>> shape = fitShape(*found);
  if (!shape.ok())
    return shape.status();
  if (isWhole && found->reader) {
    absl::StatusOr<HostArray> array = found->reader->readAll();
    if (!array.ok())
      return array.status();
    *found = {*std::move(array), nullptr};
  }
  Fitted fitted;
  if (found->reader) {
    fitted.reader = std::make_shared<const RowReader>(
        found->reader->fitted(rows, *std::move(shape)));
  } else {
    int64_t count = shape->empty() ? 1 : shape->front();
    found->array.shape = *shape;
    if (rows.keeps(found->array, 0, numElements(*shape))) {
      fitted.array = std::move(found->array);
    } else {
      fitted.array = HostArray(tensor.dtype, *std::move(shape));
      if (absl::Status status = rows.convert(found->array, 0, count, 0,
                                             fitted.array, 0, isRounded);
          !status.ok())
        return status;
    }
  }
  if (storage != toString(tensor.dtype) && storage != "text")
    converted.push_back(absl::StrCat(tensor.name, " from ", storage,
                                     isRounded && !isText ? ", rounded" : ""));
  return fitted;
}

/// Those that can be read, and then those that cannot.
static std::vector<std::string> namesOfArrays(const Dataset &dataset) {
  std::vector<std::string> names;
  for (const auto &[name, array] : dataset.arrays)
    names.push_back(name);
  for (const auto &[name, reader] : dataset.inFile)
    names.push_back(name);
  for (const auto &[name, why] : dataset.unreadable)
    names.push_back(absl::StrCat(name, " (not readable)"));
  return names;
}

/// The arrays of the data that a plan does not take.
static std::string describeIgnored(const Dataset &dataset) {
  constexpr size_t most = 8;
  std::vector<std::string> names;
  for (const auto &[name, array] : dataset.arrays)
    names.push_back(
        absl::StrCat(name, " (", describe(array.dtype, array.shape), ")"));
  for (const auto &[name, reader] : dataset.inFile)
    names.push_back(absl::StrCat(
        name, " (", describe(reader->dtype(), reader->shape()), ")"));
  for (const auto &[name, why] : dataset.unreadable)
    names.push_back(absl::StrCat(name, " (not readable)"));
  if (names.size() > most) {
    std::string more = absl::StrCat(names.size() - most, " more");
    names.resize(most);
    names.push_back(more);
  }
  return absl::StrJoin(names, ", ");
}

absl::Status shardc::rt::fitToPlan(const Plan &plan, Dataset &dataset,
                                   absl::string_view program) {
  const ProgramInfo *user =
      program.empty() ? nullptr : plan.findProgram(program);
  if (!user && !program.empty())
    return missingProgram(plan.spec(), program);
  if (absl::Status status = checkBytes(dataset.arrays); !status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(dataset.name, ": ", status.message()));
  ArrayMap inMemory;
  decltype(dataset.inFile) inFile;
  std::vector<std::string> converted;
  // Each that fits is taken out of the data.
  const std::vector<std::string> given = namesOfArrays(dataset);
  const std::string *first = nullptr;
  for (const TensorInfo &tensor : plan.tensors()) {
    if ((tensor.role != Role::Input && tensor.role != Role::Label) ||
        (user && !absl::c_linear_search(user->inputs, tensor.name)))
      continue;
    bool isWhole = tensor.shape.empty() || tensor.shape[0] != plan.batchSize();
    absl::StatusOr<Fitted> fitted =
        Fitting(tensor, isWhole, given, dataset).fit(converted);
    if (!fitted.ok())
      return fitted.status();
    if (isWhole) {
      dataset.whole.insert(tensor.name);
      inMemory.emplace(tensor.name, std::move(fitted->array));
      continue;
    }
    int64_t rows = fitted->shape()[0];
    if (!first)
      dataset.rows = rows;
    else if (rows != dataset.rows)
      return absl::InvalidArgumentError(
          absl::StrCat(dataset.name, ": array \"", tensor.name, "\" has ", rows,
                       " rows, but \"", *first, "\" has ", dataset.rows));
    first = &tensor.name;
    if (fitted->reader)
      inFile.emplace(tensor.name, std::move(fitted->reader));
    else
      inMemory.emplace(tensor.name, std::move(fitted->array));
  }
  if (!converted.empty())
    dataset.notes.push_back(absl::StrCat("converted to the model's types: ",
                                         absl::StrJoin(converted, "; ")));
  if (std::string ignored = describeIgnored(dataset); !ignored.empty())
    dataset.notes.push_back(
        absl::StrCat("ignored, since ",
                     user ? absl::StrCat("\"", program, "\"") : "the model",
                     " has no such input: ", ignored));
  dataset.arrays = std::move(inMemory);
  dataset.inFile = std::move(inFile);
  dataset.unreadable.clear();
  return absl::OkStatus();
}
