//===- JsonReader.cpp - JSON that is not trusted --------------------------===//

#include "checkpoint/JsonReader.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <limits>
#include <set>

using namespace shardc::rt;

using Json = nlohmann::json;

static constexpr int deepest = 8;

bool shardc::rt::isUtf8(const std::string &text) {
  std::string replaced =
      Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(replaced, nullptr, false) == Json(text);
}

absl::StatusOr<Json> shardc::rt::parseJson(absl::string_view text) {
  // The parser keeps the last of two equal keys, and nests without a limit.
  std::vector<std::set<std::string>> keys;
  std::string twice;
  bool isTooDeep = false;
  auto note = [&](int depth, Json::parse_event_t event, Json &parsed) {
    isTooDeep |= depth > deepest;
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key && twice.empty() &&
             !keys.back().insert(parsed.get_ref<std::string &>()).second)
      twice = parsed.get_ref<std::string &>();
    // What is too deep is thrown away.
    return depth <= deepest;
  };
  Json json = Json::parse(text.begin(), text.end(), note,
                          /*allow_exceptions=*/false);
  if (isTooDeep)
    return absl::InvalidArgumentError(
        absl::StrCat("its JSON nests deeper than ", deepest, " levels"));
  if (json.is_discarded())
    return absl::InvalidArgumentError("it is not JSON");
  if (!twice.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("its JSON has the key \"", twice, "\" twice"));
  return json;
}

JsonReader::JsonReader(const Json &object, std::string what)
    : value(object), what(std::move(what)) {
  if (!value.is_object())
    fail("expected an object");
}

void JsonReader::fail(absl::string_view message) {
  if (status.ok())
    status = absl::InvalidArgumentError(absl::StrCat(what, ": ", message));
}

const Json *JsonReader::find(const char *key) {
  if (!value.is_object())
    return nullptr;
  auto found = value.find(key);
  if (found != value.end())
    return &*found;
  fail(absl::StrCat("\"", key, "\" is missing"));
  return nullptr;
}

std::string JsonReader::text(const char *key) {
  const Json *found = find(key);
  if (const auto *text =
          found ? found->get_ptr<const std::string *>() : nullptr)
    return *text;
  fail(absl::StrCat("\"", key, "\" is not a string"));
  return "";
}

/// Reads an integer; false if it is none of i64.
static bool readInteger(const Json &value, int64_t &number) {
  if (const auto *natural = value.get_ptr<const uint64_t *>()) {
    number = static_cast<int64_t>(*natural);
    return *natural <= uint64_t(std::numeric_limits<int64_t>::max());
  }
  const auto *integer = value.get_ptr<const int64_t *>();
  number = integer ? *integer : 0;
  return integer;
}

int64_t JsonReader::integer(const char *key, int64_t least) {
  const Json *found = find(key);
  int64_t number = least;
  if (found && (!readInteger(*found, number) || number < least))
    fail(absl::StrCat("\"", key, "\" is not an integer of at least ", least));
  return number;
}

double JsonReader::number(const char *key) {
  const Json *found = find(key);
  if (!found || found->is_null())
    return std::numeric_limits<double>::quiet_NaN();
  if (const auto *real = found->get_ptr<const double *>())
    return *real;
  int64_t integer = 0;
  if (!readInteger(*found, integer))
    fail(absl::StrCat("\"", key, "\" is not a number"));
  return static_cast<double>(integer);
}

bool JsonReader::boolean(const char *key) {
  const Json *found = find(key);
  if (const bool *flag = found ? found->get_ptr<const bool *>() : nullptr)
    return *flag;
  fail(absl::StrCat("\"", key, "\" is not true or false"));
  return false;
}

uint32_t JsonReader::checksum(const char *key) {
  std::string digits = text(key);
  uint32_t sum = 0;
  if (digits.size() != 8 ||
      digits.find_first_not_of("0123456789abcdef") != digits.npos ||
      !absl::SimpleHexAtoi(digits, &sum))
    fail(absl::StrCat("\"", key, "\" is not a checksum of 8 digits"));
  return sum;
}

std::vector<int64_t> JsonReader::integers(const char *key) {
  std::vector<int64_t> numbers;
  for (const Json &element : array(key)) {
    int64_t number = 0;
    if (!readInteger(element, number) || number < 0) {
      fail(absl::StrCat("\"", key,
                        "\" holds what is not an integer of at "
                        "least 0"));
      break;
    }
    numbers.push_back(number);
  }
  return numbers;
}

const Json &JsonReader::array(const char *key) {
  static const Json none = Json::array();
  const Json *found = find(key);
  if (found && found->is_array())
    return *found;
  fail(absl::StrCat("\"", key, "\" is not an array"));
  return none;
}

const Json &JsonReader::object(const char *key) {
  static const Json none;
  const Json *found = find(key);
  if (found && found->is_object())
    return *found;
  fail(absl::StrCat("\"", key, "\" is not an object"));
  return none;
}
