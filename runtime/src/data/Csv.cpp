//===- Csv.cpp - Tables of numbers as text --------------------------------===//

#include "data/Csv.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace shardc::rt;

namespace {
struct Column {
  std::string name;
  std::vector<double> numbers;
  /// The same as integers, as long as all are.
  std::vector<int64_t> integers;
};

/// Reads one table.
class CsvReader {
public:
  CsvReader(absl::string_view text, absl::string_view what,
            const std::function<void()> &onProgress)
      : rest(text), what(what), onProgress(onProgress) {}

  absl::StatusOr<Dataset> read();

private:
  absl::Status fail(absl::string_view message) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ":", line, ": ", message));
  }
  bool nextLine(absl::string_view &text);
  absl::Status split(absl::string_view text, std::vector<std::string> &fields);
  absl::Status readHeader();
  absl::Status readNumber(absl::string_view field, double &number,
                          absl::string_view column) const;
  absl::Status addRow(const std::vector<std::string> &fields);

  absl::string_view rest, what;
  const std::function<void()> &onProgress;
  int64_t line = 0; ///< From 1.
  std::vector<Column> columns;
};
} // namespace

/// The next line that is not empty, without its end.
bool CsvReader::nextLine(absl::string_view &text) {
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    text = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    ++line;
    text = absl::StripSuffix(text, "\r");
    if (!absl::StripAsciiWhitespace(text).empty())
      return true;
  }
  return false;
}

absl::Status CsvReader::split(absl::string_view text,
                              std::vector<std::string> &fields) {
  fields.clear();
  for (;;) {
    text = absl::StripLeadingAsciiWhitespace(text);
    std::string field;
    if (absl::ConsumePrefix(&text, "\"")) {
      // Two quotes are one of the field.
      for (;;) {
        size_t quote = text.find('"');
        if (quote == text.npos)
          return fail("a quote is not closed on its line");
        absl::StrAppend(&field, text.substr(0, quote));
        text.remove_prefix(quote + 1);
        if (!absl::ConsumePrefix(&text, "\""))
          break;
        field += '"';
      }
      text = absl::StripLeadingAsciiWhitespace(text);
      if (!text.empty() && text[0] != ',')
        return fail("expected a comma behind a quote");
    } else {
      size_t comma = std::min(text.find(','), text.size());
      field = std::string(
          absl::StripTrailingAsciiWhitespace(text.substr(0, comma)));
      text.remove_prefix(comma);
    }
    fields.push_back(std::move(field));
    if (!absl::ConsumePrefix(&text, ","))
      return absl::OkStatus();
  }
}

/// Reads a number in decimal digits that a double can hold.
absl::Status CsvReader::readNumber(absl::string_view field, double &number,
                                   absl::string_view column) const {
  auto fail = [&](absl::string_view expected) {
    return this->fail(absl::StrCat("column \"", column, "\": expected ",
                                   expected, ", found \"", field.substr(0, 40),
                                   "\""));
  };
  if (field.find_first_of("xX") != field.npos ||
      !absl::SimpleAtod(field, &number))
    return fail("a number");
  bool isNamed = field.find_first_of("nN") != field.npos; // inf or nan
  if (std::isinf(number) && !isNamed)
    return fail("a number that f64 can hold");
  return absl::OkStatus();
}

absl::Status CsvReader::readHeader() {
  absl::ConsumePrefix(&rest, "\xef\xbb\xbf"); // A byte order mark.
  absl::string_view text;
  std::vector<std::string> names;
  if (!nextLine(text))
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": empty, expected a line of column names"));
  if (absl::Status status = split(text, names); !status.ok())
    return status;
  std::set<std::string> seen;
  for (const std::string &name : names) {
    double number;
    if (absl::SimpleAtod(name, &number))
      return fail(absl::StrCat("expected a line of column names, found \"",
                               name, "\""));
    if (name.empty())
      return fail(absl::StrCat("column ", seen.size() + 1, " has no name"));
    if (!seen.insert(name).second)
      return fail(absl::StrCat("two columns \"", name, "\""));
    columns.push_back({name, {}, {}});
  }
  return absl::OkStatus();
}

absl::Status CsvReader::addRow(const std::vector<std::string> &fields) {
  if (fields.size() != columns.size())
    return fail(absl::StrCat("expected ", columns.size(),
                             " numbers, one a column, found ", fields.size()));
  for (size_t i = 0; i < fields.size(); ++i) {
    Column &column = columns[i];
    double number;
    if (absl::Status status = readNumber(fields[i], number, column.name);
        !status.ok())
      return status;
    bool isIntegral = column.integers.size() == column.numbers.size();
    column.numbers.push_back(number);
    int64_t integer;
    if (isIntegral && absl::SimpleAtoi(fields[i], &integer))
      column.integers.push_back(integer);
  }
  return absl::OkStatus();
}

absl::StatusOr<Dataset> CsvReader::read() {
  if (absl::Status status = readHeader(); !status.ok())
    return status;
  absl::string_view text;
  std::vector<std::string> fields;
  constexpr size_t piece = size_t(1) << 20;
  for (size_t noted = rest.size(); nextLine(text);) {
    if (onProgress && noted - rest.size() >= piece) {
      noted = rest.size();
      onProgress();
    }
    absl::Status status = split(text, fields);
    if (status.ok())
      status = addRow(fields);
    if (!status.ok())
      return status;
  }
  Dataset dataset;
  for (const Column &column : columns) {
    int64_t rows = column.numbers.size();
    bool isIntegral = column.integers.size() == column.numbers.size();
    HostArray array(isIntegral ? DType::I64 : DType::F64, {rows});
    if (isIntegral)
      std::copy(column.integers.begin(), column.integers.end(),
                array.values<int64_t>().begin());
    else
      std::copy(column.numbers.begin(), column.numbers.end(),
                array.values<double>().begin());
    dataset.arrays.emplace(column.name, std::move(array));
    dataset.storage.emplace(column.name, "text");
  }
  return dataset;
}

absl::StatusOr<Dataset>
shardc::rt::parseCsv(absl::string_view text, absl::string_view what,
                     const std::function<void()> &onProgress) {
  return CsvReader(text, what, onProgress).read();
}
