//===- Dataset.cpp - Rows to train and evaluate on ------------------------===//

#include "shardc-rt/Dataset.h"

#include "base/ReadFile.h"
#include "data/Batches.h"
#include "data/Csv.h"
#include "data/Npz.h"
#include "data/Random.h"
#include "data/RowReader.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <fstream>
#include <optional>
#include <set>

using namespace shardc::rt;

/// The training part of the digits. The split has a seed of its own, so that
/// every run tests on the same digits.
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

/// The number of rows that all arrays share, or an error.
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

/// The file of the digits; empty: there is none.
static std::string findDigits(const DatasetOptions &options) {
  for (const std::string &dir : options.dataDirs)
    if (std::string path = absl::StrCat(dir, "/digits.npz");
        std::ifstream(path))
      return path;
  return "";
}

namespace {
/// All digits, once they are read, and the order in which they are divided.
struct Digits {
  Dataset all;
  std::vector<int64_t> order;
};
} // namespace

static absl::StatusOr<Digits> readDigits(const DatasetOptions &options) {
  std::string path = findDigits(options);
  if (path.empty())
    return absl::NotFoundError(
        absl::StrCat("the data set digits is not installed: ",
                     options.dataDirs.empty()
                         ? "the host names no folder for data sets (dataDirs)"
                         : "no digits.npz in ",
                     absl::StrJoin(options.dataDirs, ", ")));
  absl::StatusOr<ArrayMap> arrays = readNpz(path, options.onProgress);
  if (!arrays.ok())
    return arrays.status();
  Digits digits;
  Dataset &all = digits.all;
  all.arrays = *std::move(arrays);
  if (absl::Status status = countRows(path, all); !status.ok())
    return status;
  if (all.rows <= digitsTrainRows)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", all.rows, " rows, expected more than ", digitsTrainRows));
  digits.order = shuffledRows(all.rows, digitsSplitSeed, /*epoch=*/0);
  return digits;
}

/// A part of the digits, which are read if `digits` has none yet.
static absl::StatusOr<Dataset> loadDigits(absl::string_view part,
                                          const DatasetOptions &options,
                                          std::optional<Digits> &digits) {
  if (!digits) {
    absl::StatusOr<Digits> read = readDigits(options);
    if (!read.ok())
      return read.status();
    digits = *std::move(read);
  }
  bool train = part == "train";
  int64_t begin = train ? 0 : digitsTrainRows;
  int64_t rows = train ? digitsTrainRows : digits->all.rows - digitsTrainRows;
  Dataset dataset;
  absl::StatusOr<Batch> batch =
      gatherBatch(digits->all, digits->order, begin, rows);
  if (!batch.ok())
    return batch.status();
  dataset.arrays = std::move(batch->arrays);
  dataset.rows = rows;
  return dataset;
}

namespace {
/// An .npy file of a data set, and the name of its array.
struct NpyPart {
  std::string name, path;
};
} // namespace

/// The parts of "x.npy,y.npy" or "x=features.npy,y=labels.npy"; none if `spec`
/// is not of this form.
static std::vector<NpyPart> npyParts(const std::string &spec) {
  std::vector<NpyPart> parts;
  for (absl::string_view text : absl::StrSplit(spec, ',')) {
    if (!absl::EndsWith(text, ".npy"))
      return {};
    size_t equals = text.find('='), slash = text.rfind('/');
    // A folder may have `=` in its name.
    if (equals != text.npos && text.find('/') > equals) {
      parts.push_back({std::string(text.substr(0, equals)),
                       std::string(text.substr(equals + 1))});
      continue;
    }
    absl::string_view name = slash == text.npos ? text : text.substr(slash + 1);
    parts.push_back(
        {std::string(absl::StripSuffix(name, ".npy")), std::string(text)});
  }
  return parts;
}

/// Adds an array, or the reason why it cannot be read.
static void add(Dataset &dataset, const std::string &name,
                absl::StatusOr<StoredArray> array) {
  if (!array.ok()) {
    dataset.unreadable.emplace(name, array.status());
    return;
  }
  dataset.arrays.emplace(name, std::move(array->array));
  if (!array->storage.empty())
    dataset.storage.emplace(name, std::move(array->storage));
}

/// Adds an array that stays in its file; false: it is a scalar.
static bool addRows(Dataset &dataset, const std::string &name,
                    const StoredElements &elements) {
  if (elements.header().shape().empty())
    return false;
  dataset.inFile.emplace(name, std::make_shared<const RowReader>(elements));
  return true;
}

/// Notes why an array that should stay in its file is in memory.
static void noteWhole(Dataset &dataset, const std::string &name) {
  auto storage = dataset.storage.find(name);
  bool isFortran = storage != dataset.storage.end() &&
                   absl::StrContains(storage->second, "Fortran");
  dataset.readWhole.emplace(name, isFortran ? "it is in Fortran order"
                                            : "it is compressed");
}

static absl::StatusOr<Dataset> loadNpz(const std::string &path,
                                       const DatasetOptions &options) {
  Dataset dataset;
  std::set<std::string> inFile;
  if (options.byRows) {
    absl::StatusOr<StoredArrays> stored = findStoredArrays(path);
    if (!stored.ok())
      return stored.status();
    for (const auto &[name, elements] : stored->arrays)
      if (addRows(dataset, name, elements))
        inFile.insert(name);
  }
  auto entries = readNpzEntries(path, inFile, options.onProgress);
  if (!entries.ok())
    return entries.status();
  for (auto &[name, array] : *entries) {
    add(dataset, name, std::move(array));
    if (options.byRows)
      noteWhole(dataset, name);
  }
  return dataset;
}

/// Adds the array of an .npy file, which stays there if it can.
static absl::Status addNpy(const NpyPart &part, const DatasetOptions &options,
                           Dataset &dataset) {
  if (options.byRows) {
    absl::StatusOr<ReadableFile> file = ReadableFile::open(part.path);
    if (!file.ok())
      return file.status();
    uint64_t bytes = file->bytes();
    absl::StatusOr<StoredElements> elements = StoredElements::create(
        std::make_shared<const ReadableFile>(*std::move(file)), 0, bytes);
    if (elements.ok() && addRows(dataset, part.name, *elements))
      return absl::OkStatus();
  }
  absl::StatusOr<StoredArray> array = readNpy(part.path, options.onProgress);
  if (!array.ok())
    return array.status();
  add(dataset, part.name, std::move(array));
  if (options.byRows)
    noteWhole(dataset, part.name);
  return absl::OkStatus();
}

static absl::StatusOr<Dataset> loadNpy(const std::vector<NpyPart> &parts,
                                       const DatasetOptions &options) {
  Dataset dataset;
  for (const NpyPart &part : parts) {
    if (part.name.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("an array without a name: expected NAME=", part.path));
    if (dataset.arrays.count(part.name) || dataset.inFile.count(part.name))
      return absl::InvalidArgumentError(
          absl::StrCat(part.path, ": there is an array \"", part.name,
                       "\" already; expected NAME=", part.path));
    if (absl::Status status = addNpy(part, options, dataset); !status.ok())
      return status;
  }
  return dataset;
}

static absl::StatusOr<Dataset> loadCsv(const std::string &path,
                                       const DatasetOptions &options) {
  absl::StatusOr<std::string> text = readFile(path, options.onProgress);
  if (!text.ok())
    return text.status();
  absl::StatusOr<Dataset> dataset = parseCsv(*text, path, options.onProgress);
  if (dataset.ok() && options.byRows)
    for (const auto &[name, array] : dataset->arrays)
      dataset->readWhole.emplace(name, "it is text");
  return dataset;
}

std::vector<std::string> shardc::rt::dataFiles(const std::string &spec,
                                               const DatasetOptions &options) {
  if (absl::EndsWith(spec, ".npz") || absl::EndsWith(spec, ".csv"))
    return {spec};
  if (spec == "digits" || absl::StartsWith(spec, "digits:"))
    return {findDigits(options)};
  std::vector<std::string> files;
  for (const NpyPart &part : npyParts(spec))
    files.push_back(part.path);
  return files;
}

static absl::StatusOr<Dataset> load(const std::string &spec,
                                    const DatasetOptions &options,
                                    std::optional<Digits> &digits) {
  absl::StatusOr<Dataset> dataset;
  if (spec == "synthetic:quadratic")
    dataset = makeQuadratic(options.seed);
  else if (spec == "digits" || spec == "digits:train")
    dataset = loadDigits("train", options, digits);
  else if (spec == "digits:test")
    dataset = loadDigits("test", options, digits);
  else if (absl::EndsWith(spec, ".npz"))
    dataset = loadNpz(spec, options);
  else if (absl::EndsWith(spec, ".csv"))
    dataset = loadCsv(spec, options);
  else if (std::vector<NpyPart> parts = npyParts(spec); !parts.empty())
    dataset = loadNpy(parts, options);
  else
    return absl::InvalidArgumentError(
        absl::StrCat("unknown data \"", spec,
                     "\": expected FILE.npz, X.npy,Y.npy, FILE.csv, "
                     "synthetic:quadratic, digits, digits:train or "
                     "digits:test"));
  if (dataset.ok())
    dataset->name = spec;
  return dataset;
}

absl::StatusOr<Dataset> shardc::rt::loadDataset(const std::string &spec,
                                                const DatasetOptions &options) {
  std::optional<Digits> digits;
  return load(spec, options, digits);
}

absl::StatusOr<std::vector<Dataset>>
shardc::rt::loadDatasets(const std::vector<std::string> &specs,
                         const DatasetOptions &options) {
  std::vector<Dataset> datasets;
  std::optional<Digits> digits;
  for (const std::string &spec : specs) {
    absl::StatusOr<Dataset> dataset = load(spec, options, digits);
    if (!dataset.ok())
      return dataset.status();
    datasets.push_back(*std::move(dataset));
  }
  return datasets;
}
