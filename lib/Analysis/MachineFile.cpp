//===- MachineFile.cpp - Machines from JSON -------------------------------===//

#include "shardc/Analysis/MachineModel.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

/// Deeper files are refused: LLVM's parser recurses without a limit.
static constexpr int maxNesting = 16;

static std::vector<std::string> getLinkNames() {
  std::vector<std::string> names;
  for (const NamedLink &link : getBuiltInLinks())
    names.push_back(link.name.str());
  return names;
}

static std::vector<std::string> getMachineNames() {
  std::vector<std::string> names;
  for (const Machine &machine : getBuiltInMachines())
    names.push_back(machine.name);
  return names;
}

static const Machine *findMachine(StringRef name) {
  const auto *it = find_if(getBuiltInMachines(), [&](const Machine &machine) {
    return machine.name == name;
  });
  return it == getBuiltInMachines().end() ? nullptr : it;
}

static const NamedLink *findLink(StringRef name) {
  const auto *it = find_if(getBuiltInLinks(), [&](const NamedLink &link) {
    return link.name == name;
  });
  return it == getBuiltInLinks().end() ? nullptr : it;
}

/// Whether brackets nest no deeper than `maxNesting`; `line` is where they do.
static bool isShallow(StringRef text, int &line) {
  int depth = 0;
  bool isInString = false;
  line = 1;
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
        return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

/// `value` as an error shows it.
static std::string describe(const json::Value &value) {
  switch (value.kind()) {
  case json::Value::Array:
    return "an array";
  case json::Value::Object:
    return "an object";
  case json::Value::String:
    if (value.getAsString()->size() > 40)
      return "a string of " + std::to_string(value.getAsString()->size()) +
             " characters";
    break;
  default:
    break;
  }
  return formatv("{0}", value).str();
}

namespace {

/// Reads parts of one file. Every reader returns false after it has noted the
/// first error.
class MachineReader {
public:
  explicit MachineReader(StringRef file) : file(file) {}

  bool read(const json::Value &root, Machine &machine) {
    const json::Object *object = asObject(root, "");
    if (!object || !checkKeys(*object, "",
                              {"name", "source", "device", "shared",
                               "f32_products", "default_link", "axes"}))
      return false;
    machine.source = file.str();
    const json::Value *device = getRequired(*object, "", "device");
    if (!device || !readDevice(*device, machine))
      return false;
    if (!readString(*object, "name", machine.name) ||
        !readString(*object, "source", machine.source) ||
        !readShared(*object, machine) || !readProducts(*object, machine))
      return false;
    const json::Value *link = object->get("default_link");
    if (!link && !device->getAsString())
      link = getRequired(*object, "", "default_link");
    if (link && !readLink(*link, "default_link", machine.defaultLink))
      return false;
    return message.empty() && readAxes(*object, machine);
  }

  /// What was wrong.
  Error takeError() const {
    return createStringError(inconvertibleErrorCode(), message);
  }

private:
  bool fail(const Twine &key, const Twine &what) {
    std::string name = key.str();
    message = (file + ": " + (name.empty() ? "" : name + ": ") + what).str();
    return false;
  }

  const json::Object *asObject(const json::Value &value, const Twine &key) {
    const json::Object *object = value.getAsObject();
    if (!object)
      fail(key, "expected an object, found " + describe(value));
    return object;
  }

  const json::Value *getRequired(const json::Object &object, StringRef path,
                                 StringRef key) {
    const json::Value *value = object.get(key);
    if (!value)
      fail(path.drop_back(path.ends_with(".")),
           "expected the key \"" + key + "\", which is missing");
    return value;
  }

  bool checkKeys(const json::Object &object, StringRef path,
                 const std::vector<std::string> &known) {
    // In a fixed order, for the same message every time.
    std::vector<std::string> keys;
    for (const auto &entry : object)
      keys.push_back(StringRef(entry.first).str());
    llvm::sort(keys);
    for (const std::string &key : keys)
      if (!is_contained(known, key))
        return fail(path + key, "unknown key" + suggest(key, known));
    return true;
  }

  /// A finite number above zero, or also zero.
  bool readNumber(const json::Object &object, StringRef path, StringRef key,
                  bool zeroToo, double &number) {
    const json::Value *value = getRequired(object, path, key);
    if (!value)
      return false;
    std::optional<double> found = value->getAsNumber();
    if (!found || !std::isfinite(*found) || *found < 0 ||
        (*found == 0 && !zeroToo))
      return fail(path + key, Twine("expected a number ") +
                                  (zeroToo ? "of at least 0" : "above 0") +
                                  ", found " + describe(*value));
    number = *found;
    return true;
  }

  bool readString(const json::Object &object, StringRef key,
                  std::string &text) {
    const json::Value *value = object.get(key);
    if (!value)
      return true;
    std::optional<StringRef> found = value->getAsString();
    if (!found)
      return fail(key, "expected a string, found " + describe(*value));
    text = found->str();
    return true;
  }

  bool readShared(const json::Object &object, Machine &machine) {
    const json::Value *value = object.get("shared");
    if (!value)
      return true;
    std::optional<bool> found = value->getAsBoolean();
    if (!found)
      return fail("shared",
                  "expected true or false, found " + describe(*value));
    machine.isShared = *found;
    return true;
  }

  bool readProducts(const json::Object &object, Machine &machine) {
    std::string name = "f32";
    if (!readString(object, "f32_products", name))
      return false;
    if (name != "f32" && name != "tf32")
      return fail("f32_products",
                  "expected \"f32\" or \"tf32\", found \"" + name + "\"");
    if (name == "tf32" && machine.getFlopsPerSecond(Arithmetic::TF32) == 0)
      return fail("f32_products", "expected \"f32\", found \"tf32\", of which "
                                  "the device has no FLOP/s");
    machine.f32Products = name == "tf32" ? Arithmetic::TF32 : Arithmetic::F32;
    return true;
  }

  bool readDevice(const json::Value &value, Machine &machine) {
    if (std::optional<StringRef> name = value.getAsString()) {
      const Machine *known = findMachine(*name);
      if (!known)
        return fail("device", "unknown device '" + *name + "'" +
                                  suggest(name->str(), getMachineNames()));
      std::string source = machine.source;
      machine = *known;
      machine.source = source;
      return true;
    }
    const json::Object *object = asObject(value, "device");
    if (!object || !checkKeys(*object, "device.",
                              {"flops_per_second", "memory_bytes",
                               "memory_bytes_per_second"}))
      return false;
    machine.name = file.str();
    const json::Value *flops =
        getRequired(*object, "device.", "flops_per_second");
    return flops && readFlops(*flops, machine) &&
           readNumber(*object, "device.", "memory_bytes", false,
                      machine.memoryBytes) &&
           readNumber(*object, "device.", "memory_bytes_per_second", false,
                      machine.memoryBytesPerSecond);
  }

  bool readFlops(const json::Value &value, Machine &machine) {
    static constexpr StringLiteral path = "device.flops_per_second.";
    // In the order of Arithmetic.
    static const std::vector<std::string> names = {"f64", "f32", "tf32",
                                                   "bf16"};
    const json::Object *object = asObject(value, path.drop_back());
    if (!object || !checkKeys(*object, path, names))
      return false;
    for (unsigned i = 0; i < numArithmetics; ++i) {
      // Only NVIDIA's tensor cores have it.
      if (names[i] == "tf32" && !object->get("tf32"))
        continue;
      if (!readNumber(*object, path, names[i], false,
                      machine.flopsPerSecond[i]))
        return false;
    }
    return true;
  }

  bool readLink(const json::Value &value, const std::string &key, Link &link) {
    if (std::optional<StringRef> name = value.getAsString()) {
      const NamedLink *known = findLink(*name);
      if (!known)
        return fail(key, "unknown link '" + *name + "'" +
                             suggest(name->str(), getLinkNames()));
      link = known->link;
      return true;
    }
    const json::Object *object = asObject(value, key);
    std::string path = key + ".";
    return object &&
           checkKeys(*object, path, {"bytes_per_second", "latency_seconds"}) &&
           readNumber(*object, path, "bytes_per_second", false,
                      link.bytesPerSecond) &&
           readNumber(*object, path, "latency_seconds", true,
                      link.latencySeconds);
  }

  bool readAxes(const json::Object &object, Machine &machine) {
    const json::Value *value = object.get("axes");
    if (!value)
      return true;
    const json::Object *axes = asObject(*value, "axes");
    if (!axes)
      return false;
    std::vector<std::string> names;
    for (const auto &entry : *axes)
      names.push_back(StringRef(entry.first).str());
    llvm::sort(names);
    for (const std::string &name : names) {
      Link link;
      if (!readLink(*axes->get(name), "axes." + name, link))
        return false;
      machine.axisLinks.emplace_back(name, link);
    }
    return true;
  }

  StringRef file;
  std::string message;
};

} // namespace

Expected<Machine> shardc::parseMachine(StringRef json, StringRef file) {
  int line = 0;
  if (!isShallow(json, line))
    return createStringError(inconvertibleErrorCode(),
                             file + ":" + Twine(line) + ": expected at most " +
                                 Twine(maxNesting) +
                                 " nested objects and arrays, found more");
  Expected<json::Value> root = json::parse(json);
  if (!root)
    return createStringError(inconvertibleErrorCode(),
                             file + ": " + toString(root.takeError()));
  Machine machine;
  MachineReader reader(file);
  if (!reader.read(*root, machine))
    return reader.takeError();
  return machine;
}

Expected<Machine> shardc::loadMachine(StringRef nameOrFile) {
  if (const Machine *machine = findMachine(nameOrFile))
    return *machine;
  std::string name = nameOrFile.str();
  auto buffer = MemoryBuffer::getFile(name, /*IsText=*/true);
  if (buffer)
    return parseMachine((*buffer)->getBuffer(), name);
  if (findLink(nameOrFile))
    return createStringError(inconvertibleErrorCode(),
                             "'" + name +
                                 "' is a link between devices, not a "
                                 "machine; expected a file or one of " +
                                 join(getMachineNames(), ", "));
  // What looks like a path was meant as one.
  if (nameOrFile.find_first_of("./\\") != StringRef::npos)
    return createStringError(buffer.getError(),
                             "cannot read '" + name +
                                 "': " + buffer.getError().message());
  return createStringError(inconvertibleErrorCode(),
                           "unknown machine '" + name + "'" +
                               suggest(name, getMachineNames()));
}
