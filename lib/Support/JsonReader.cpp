//===- JsonReader.cpp - JSON with errors that say where -------------------===//

#include "shardc/Support/JsonReader.h"

#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

static constexpr int maxNesting = 16;

/// The line at which brackets nest deeper than `maxNesting`; 0 if they do not.
static int findTooDeep(StringRef text) {
  int depth = 0, line = 1;
  bool isInString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    line += c == '\n';
    if (isInString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        isInString = false;
    } else if (c == '"') {
      isInString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > maxNesting)
        return line;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return 0;
}

Expected<json::Value> shardc::parseJson(StringRef text, StringRef file) {
  auto error = [](const Twine &message) {
    return createStringError(inconvertibleErrorCode(), message);
  };
  if (int line = findTooDeep(text))
    return error(file + ":" + Twine(line) + ": expected at most " +
                 Twine(maxNesting) + " nested objects and arrays, found more");
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return error(file + ": " + toString(value.takeError()));
  return value;
}

/// `value` as an error shows it.
static std::string describe(const json::Value &value) {
  if (value.getAsArray())
    return "an array";
  if (value.getAsObject())
    return "an object";
  if (std::optional<StringRef> text = value.getAsString();
      text && text->size() > 40)
    return "a string of " + std::to_string(text->size()) + " characters";
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
                            StringRef key, bool zeroToo, double &number) {
  const json::Value *value = getRequired(object, path, key);
  if (!value)
    return false;
  std::optional<double> found = value->getAsNumber();
  if (!found || !std::isfinite(*found) || *found < 0 ||
      (*found == 0 && !zeroToo))
    return fail(join(path, key), Twine("expected a number ") +
                                     (zeroToo ? "of at least 0" : "above 0") +
                                     ", found " + describe(*value));
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
