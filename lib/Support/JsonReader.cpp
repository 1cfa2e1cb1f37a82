//===- JsonReader.cpp - JSON with errors that name the place --------------===//

#include "shardc/Support/JsonReader.h"

#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

using namespace llvm;
using namespace shardc;

static constexpr size_t maxNesting = 16;

namespace {

/// Finds the faults that LLVM's parser accepts: brackets so deep that it
/// overflows the stack, and keys that an object has twice. All other faults are
/// left to the parser.
class JsonScanner {
public:
  explicit JsonScanner(StringRef text) : text(text) {}

  /// "LINE: error", or "".
  std::string scan() {
    for (; at < text.size() && error.empty(); ++at) {
      char c = text[at];
      if (c == '\n')
        ++line;
      else if (c == '"')
        readString();
      else if (c == '[' || c == '{')
        open();
      else if ((c == ']' || c == '}') && !keys.empty())
        keys.pop_back();
    }
    return error;
  }

private:
  void open() {
    keys.emplace_back();
    if (keys.size() > maxNesting)
      fail("expected at most " + Twine(maxNesting) +
           " nested objects and arrays, found more");
  }

  /// Reads up to the closing quote; a colon after it makes the string a key.
  void readString() {
    size_t begin = at++;
    while (at < text.size() && text[at] != '"' && text[at] != '\n')
      at += text[at] == '\\' ? 2 : 1;
    StringRef quoted = text.slice(begin, at + 1);
    if (keys.empty() || !text.drop_front(std::min(at + 1, text.size()))
                             .ltrim()
                             .starts_with(":"))
      return;
    Expected<json::Value> key = json::parse(quoted);
    if (!key)
      return consumeError(key.takeError());
    std::string name = key->getAsString().value_or("").str();
    if (!keys.back().insert(name).second)
      fail("the key \"" + name + "\" is given twice");
  }

  void fail(const Twine &what) { error = (Twine(line) + ": " + what).str(); }

  StringRef text;
  size_t at = 0;
  int line = 1;
  /// The keys of each open object; empty sets for open arrays.
  std::vector<std::set<std::string>> keys;
  std::string error;
};

} // namespace

Expected<json::Value> shardc::parseJson(StringRef text, StringRef file) {
  auto error = [](const Twine &message) {
    return createStringError(inconvertibleErrorCode(), message);
  };
  if (std::string wrong = JsonScanner(text).scan(); !wrong.empty())
    return error(file + ":" + wrong);
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return error(file + ": " + toString(value.takeError()));
  return value;
}

/// The shortest text that reads as `number`.
static std::string printShortest(double number) {
  char digits[32];
  return std::string(digits,
                     std::to_chars(digits, std::end(digits), number).ptr);
}

/// `value` in the form that errors show.
static std::string describe(const json::Value &value) {
  if (value.getAsArray())
    return "an array";
  if (value.getAsObject())
    return "an object";
  if (std::optional<StringRef> text = value.getAsString();
      text && text->size() > 40)
    return "a string of " + std::to_string(text->size()) + " characters";
  if (!value.getAsInteger())
    if (std::optional<double> number = value.getAsNumber())
      return printShortest(*number);
  return formatv("{0}", value).str();
}

static std::string join(StringRef path, StringRef key) {
  return path.empty() ? key.str() : (path + "." + key).str();
}

bool JsonReader::fail(StringRef path, const Twine &what) {
  message = (file + ": " + path + (path.empty() ? "" : ": ") + what).str();
  return false;
}

Error JsonReader::takeError() const {
  return createStringError(inconvertibleErrorCode(), message);
}

const json::Object *JsonReader::asObject(const json::Value &value,
                                         StringRef path) {
  const json::Object *object = value.getAsObject();
  if (!object)
    fail(path, "expected an object, found " + describe(value));
  return object;
}

const json::Value *JsonReader::getRequired(const json::Object &object,
                                           StringRef path, StringRef key) {
  const json::Value *value = object.get(key);
  if (!value)
    fail(path, "expected the key \"" + key + "\", which is missing");
  return value;
}

std::vector<std::string> JsonReader::getKeys(const json::Object &object) {
  std::vector<std::string> keys;
  for (const auto &entry : object)
    keys.push_back(StringRef(entry.first).str());
  llvm::sort(keys);
  return keys;
}

bool JsonReader::checkKeys(const json::Object &object, StringRef path,
                           const std::vector<std::string> &known) {
  for (const std::string &key : getKeys(object))
    if (!is_contained(known, key))
      return fail(join(path, key), "unknown key" + suggest(key, known));
  return true;
}

bool JsonReader::readNumber(const json::Object &object, StringRef path,
                            StringRef key, double least, double most,
                            double &number) {
  const json::Value *value = getRequired(object, path, key);
  if (!value)
    return false;
  std::optional<double> found = value->getAsNumber();
  if (!found || !(*found >= least && *found <= most))
    return fail(join(path, key),
                formatv("expected a number from {0} to {1}, found {2}",
                        printShortest(least), printShortest(most),
                        describe(*value))
                    .str());
  number = *found;
  return true;
}

bool JsonReader::readString(const json::Object &root, StringRef key,
                            std::string &text) {
  const json::Value *value = root.get(key);
  if (!value)
    return true;
  std::optional<StringRef> found = value->getAsString();
  if (!found)
    return fail(key, "expected a string, found " + describe(*value));
  text = found->str();
  return true;
}

bool JsonReader::readBool(const json::Object &root, StringRef key,
                          bool &value) {
  const json::Value *entry = root.get(key);
  if (!entry)
    return true;
  std::optional<bool> found = entry->getAsBoolean();
  if (!found)
    return fail(key, "expected true or false, found " + describe(*entry));
  value = *found;
  return true;
}
