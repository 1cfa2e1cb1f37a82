//===- FitToPlan.cpp - The arrays that a plan's inputs are ----------------===//

#include "shardc-rt/Dataset.h"

#include "base/Convert.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cmath>

using namespace shardc::rt;

namespace {
/// One input or label that an array of the data has to fit.
class Fitting {
public:
  Fitting(const TensorInfo &tensor, Dataset &dataset)
      : tensor(tensor), dataset(dataset),
        what(absl::StrCat(dataset.name, ", array \"", tensor.name, "\"")) {}

  /// Takes the needed arrays out of the data, and notes conversions.
  absl::StatusOr<HostArray> fit(std::vector<std::string> &converted);

private:
  absl::StatusOr<HostArray> take();
  absl::StatusOr<HostArray> takeColumns(int64_t first);
  absl::Status fitShape(HostArray &array) const;
  absl::Status errorAtRow(const HostArray &array, int64_t element,
                          absl::string_view found,
                          absl::string_view expected) const;
  absl::StatusOr<HostArray> fromFloats(const HostArray &array);
  absl::StatusOr<HostArray> fromIntegers(const HostArray &array) const;

  const TensorInfo &tensor;
  Dataset &dataset;
  std::string what;
  std::string storage;    ///< The stored type.
  bool isText = false;    ///< As decimal numbers, which have no type.
  bool isRounded = false; ///< By the conversion to the model's type.
};
} // namespace

/// Assembles an array from one array per column, of which `first` exists.
absl::StatusOr<HostArray> Fitting::takeColumns(int64_t first) {
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
absl::StatusOr<HostArray> Fitting::take() {
  if (auto found = dataset.arrays.find(tensor.name);
      found != dataset.arrays.end()) {
    HostArray array = std::move(found->second);
    dataset.arrays.erase(found);
    auto stored = dataset.storage.find(tensor.name);
    storage = stored == dataset.storage.end()
                  ? std::string(toString(array.dtype))
                  : stored->second;
    isText = storage == "text";
    return array;
  }
  if (auto found = dataset.unreadable.find(tensor.name);
      found != dataset.unreadable.end())
    return found->second;
  for (int64_t first : {0, 1})
    if (auto found = dataset.arrays.find(absl::StrCat(tensor.name, first));
        found != dataset.arrays.end() && found->second.shape.size() == 1)
      return takeColumns(first);
  std::vector<std::string> names;
  for (const auto &[name, array] : dataset.arrays)
    names.push_back(name);
  return absl::InvalidArgumentError(
      absl::StrCat(dataset.name, ": array \"", tensor.name,
                   "\" is missing; the model's ", toString(tensor.role), " is ",
                   describe(tensor.dtype, tensor.shape), ", the data has ",
                   names.empty() ? "no arrays" : absl::StrJoin(names, ", ")));
}

/// Type and shape are those of the model, except for the number of rows;
/// dimensions of size 1 are ignored.
absl::Status Fitting::fitShape(HostArray &array) const {
  std::vector<int64_t> expected = tensor.shape;
  if (!expected.empty() && !array.shape.empty())
    expected[0] = array.shape[0];
  auto withoutOnes = [](std::vector<int64_t> shape) {
    if (!shape.empty())
      shape.erase(std::remove(shape.begin() + 1, shape.end(), 1), shape.end());
    return shape;
  };
  // Floats to floats, integers to anything but bools.
  bool isConvertible = array.dtype == tensor.dtype ||
                       (tensor.dtype != DType::Bool &&
                        (isFloat(tensor.dtype) || !isFloat(array.dtype)));
  if (!isConvertible || withoutOnes(array.shape) != withoutOnes(expected))
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is ", describe(array.dtype, array.shape), ", but the model's ",
        toString(tensor.role), " is ", describe(tensor.dtype, tensor.shape),
        " (the rows of a batch first)"));
  array.shape = expected;
  return absl::OkStatus();
}

/// An error at the row of `element`.
absl::Status Fitting::errorAtRow(const HostArray &array, int64_t element,
                                 absl::string_view found,
                                 absl::string_view expected) const {
  int64_t rowSize =
      std::max<int64_t>(1, numElements(absl::MakeSpan(array.shape).subspan(1)));
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": row ", element / rowSize, " ", found, ", ", expected));
}

absl::StatusOr<HostArray> Fitting::fromFloats(const HostArray &array) {
  HostArray converted(tensor.dtype, array.shape);
  int64_t count = numElements(array.shape);
  for (int64_t i = 0; i < count; ++i) {
    double value = numberAt(array, i);
    if (!std::isfinite(value))
      return errorAtRow(array, i, absl::StrCat("holds ", value),
                        "expected finite numbers");
    storeNumber(converted, i, value);
    double stored = numberAt(converted, i);
    if (!std::isfinite(stored))
      return errorAtRow(
          array, i, absl::StrCat("holds ", value),
          absl::StrCat("which ", toString(tensor.dtype), " cannot hold"));
    isRounded |= value != stored;
  }
  return converted;
}

absl::StatusOr<HostArray> Fitting::fromIntegers(const HostArray &array) const {
  HostArray converted(tensor.dtype, array.shape);
  int64_t count = numElements(array.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = integerAt(array, i);
    if (tensor.labelClasses > 0 && (value < 0 || value >= tensor.labelClasses))
      return errorAtRow(
          array, i, absl::StrCat("has label ", value),
          absl::StrCat("expected 0 to ", tensor.labelClasses - 1));
    if (!storeInteger(converted, i, value))
      return errorAtRow(array, i, absl::StrCat("holds ", value),
                        absl::StrCat("which ", toString(tensor.dtype),
                                     " cannot hold exactly"));
  }
  return converted;
}

absl::StatusOr<HostArray> Fitting::fit(std::vector<std::string> &converted) {
  absl::StatusOr<HostArray> array = take();
  if (!array.ok())
    return array;
  if (absl::Status status = fitShape(*array); !status.ok())
    return status;
  array = isFloat(array->dtype) ? fromFloats(*array) : fromIntegers(*array);
  if (array.ok() && storage != toString(tensor.dtype) && storage != "text")
    converted.push_back(absl::StrCat(tensor.name, " from ", storage,
                                     isRounded && !isText ? ", rounded" : ""));
  return array;
}

/// The arrays of the data that a plan does not take.
static std::string describeIgnored(const Dataset &dataset) {
  constexpr size_t most = 8;
  std::vector<std::string> names;
  for (const auto &[name, array] : dataset.arrays)
    names.push_back(
        absl::StrCat(name, " (", describe(array.dtype, array.shape), ")"));
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
    return absl::NotFoundError(
        absl::StrCat("the plan has no program \"", program, "\""));
  ArrayMap fitting;
  std::vector<std::string> converted;
  const std::string *first = nullptr;
  for (const TensorInfo &tensor : plan.tensors()) {
    if ((tensor.role != Role::Input && tensor.role != Role::Label) ||
        (user && !absl::c_linear_search(user->inputs, tensor.name)))
      continue;
    absl::StatusOr<HostArray> array = Fitting(tensor, dataset).fit(converted);
    if (!array.ok())
      return array.status();
    int64_t rows = array->shape.empty() ? 0 : array->shape[0];
    if (!first)
      dataset.rows = rows;
    else if (rows != dataset.rows)
      return absl::InvalidArgumentError(
          absl::StrCat(dataset.name, ": array \"", tensor.name, "\" has ", rows,
                       " rows, but \"", *first, "\" has ", dataset.rows));
    first = &tensor.name;
    fitting.emplace(tensor.name, *std::move(array));
  }
  if (!converted.empty())
    dataset.notes.push_back(absl::StrCat("converted to the model's types: ",
                                         absl::StrJoin(converted, "; ")));
  if (std::string ignored = describeIgnored(dataset); !ignored.empty())
    dataset.notes.push_back(
        absl::StrCat("ignored, since ",
                     user ? absl::StrCat("\"", program, "\"") : "the model",
                     " has no such input: ", ignored));
  dataset.arrays = std::move(fitting);
  dataset.unreadable.clear();
  return absl::OkStatus();
}
