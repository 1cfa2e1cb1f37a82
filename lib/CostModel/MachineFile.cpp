//===- MachineFile.cpp - Machines from JSON -------------------------------===//

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Support/InputFiles.h"
#include "shardc/Support/JsonReader.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

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

/// The entry called `name`, or null.
template <typename T>
static const T *findByName(ArrayRef<T> entries, StringRef name) {
  const T *entry =
      find_if(entries, [&](const T &entry) { return entry.name == name; });
  return entry == entries.end() ? nullptr : entry;
}

// Limits far from the rates of any machine, so that a misplaced exponent is
// found, and so near that no estimate overflows.
static constexpr double leastBytes = 1, mostBytes = 1e18;
static constexpr double leastRate = 1, mostRate = 1e24;
static constexpr double mostLatency = 1e6, mostDevices = 1e6;
static constexpr double leastSeconds = 1e-12;
static constexpr double leastFactor = 1e-3, mostFactor = 1e3;
static constexpr double mostWorkers = 1e6, mostLanes = 1024, mostTerms = 1e6;
static constexpr uint64_t maxMachineBytes = uint64_t(1) << 24;

namespace {

/// Reads the parts of a machine; false after the first error.
class MachineReader {
public:
  explicit MachineReader(StringRef file) : file(file), fields(file) {}

  bool read(const json::Value &value, Machine &machine) {
    const json::Object *given = fields.asObject(value, "");
    if (!given)
      return false;
    json::Object root = *given;
    if (!renameKeys(root) ||
        !fields.checkKeys(root, "",
                          {"name", "source", "device", "shared", "computer",
                           "f32_gemms", "gemms", "gemm_seconds", "gemm_factors",
                           "command_seconds", "step_seconds",
                           "concurrent_command_seconds",
                           "host_bytes_per_second", "default_link", "axes",
                           "hosts", "collectives", "overlap"}))
      return false;
    const json::Value *device = fields.getRequired(root, "", "device");
    if (!device || !readDevice(*device, machine))
      return false;
    machine.source = file.str();
    return fields.readString(root, "name", machine.name) &&
           fields.readString(root, "source", machine.source) &&
           fields.readBool(root, "shared", machine.isShared) &&
           readComputer(root, machine) && readGemms(root, machine) &&
           readShortSides(root, machine) && readGemmTimes(root, machine) &&
           readGemmFactors(root, machine) && readStarts(root, machine) &&
           readOverlap(root, machine) &&
           readDefaultLink(root, !device->getAsString(), machine) &&
           readAxes(root, machine) && readHosts(root, machine) &&
           readCollectives(root, machine);
  }

  Error takeError() const { return fields.takeError(); }

private:
  /// Gives keys their new names; the former ones stay for one release.
  bool renameKeys(json::Object &root) {
    const json::Value *gemms = root.get("f32_products");
    if (!gemms)
      return true;
    json::Value moved = *gemms;
    root.erase("f32_products");
    if (!root.try_emplace("f32_gemms", std::move(moved)).second)
      return fields.fail("f32_products",
                         "the former name of 'f32_gemms', which is given, too; "
                         "expected one of them");
    return true;
  }

  bool readDevice(const json::Value &value, Machine &machine) {
    if (std::optional<StringRef> name = value.getAsString()) {
      const Machine *known = findByName(getBuiltInMachines(), *name);
      if (!known)
        return fields.fail("device",
                           "unknown device '" + *name + "'" +
                               suggest(name->str(), getMachineNames()));
      machine = *known;
    }
    machine.name = file.str();
    return value.getAsString() || readNumbers(value, machine);
  }

  bool readNumbers(const json::Value &value, Machine &machine) {
    const json::Object *device = fields.asObject(value, "device");
    if (!device || !fields.checkKeys(*device, "device",
                                     {"flops_per_second", "memory_bytes",
                                      "memory_bytes_per_second"}))
      return false;
    const json::Value *flops =
        fields.getRequired(*device, "device", "flops_per_second");
    return flops && readFlops(*flops, machine) &&
           fields.readNumber(*device, "device", "memory_bytes", leastBytes,
                             mostBytes, machine.memoryBytes) &&
           readMemoryRate(*device, machine);
  }

  /// Reads a rate, or rates by reuse distance, of which that of the largest is
  /// the rate of what is not in a cache.
  bool readMemoryRate(const json::Object &device, Machine &machine) {
    static constexpr StringLiteral key = "memory_bytes_per_second";
    const json::Value *rates = device.get(key);
    if (!rates || !rates->getAsObject())
      return fields.readNumber(device, "device", key, leastRate, mostRate,
                               machine.memoryBytesPerSecond);
    if (!readRates(device, "device", key, machine.memory))
      return false;
    machine.memoryBytesPerSecond = machine.memory.back().bytesPerSecond;
    return true;
  }

  /// In the order of ComputeType.
  static const std::vector<std::string> &getTypeNames() {
    static const std::vector<std::string> names = {"f64", "f32", "tf32",
                                                   "bf16"};
    return names;
  }

  bool readFlops(const json::Value &value, Machine &machine) {
    static constexpr StringLiteral path = "device.flops_per_second";
    const std::vector<std::string> &names = getTypeNames();
    const json::Object *flops = fields.asObject(value, path);
    if (!flops || !fields.checkKeys(*flops, path, names))
      return false;
    for (unsigned i = 0; i < numComputeTypes; ++i) {
      // Only NVIDIA's tensor cores have it.
      if (names[i] == "tf32" && !flops->get("tf32"))
        continue;
      if (!fields.readNumber(*flops, path, names[i], leastRate, mostRate,
                             machine.flopsPerSecond[i]))
        return false;
    }
    return true;
  }

  bool readComputer(const json::Object &root, Machine &machine) {
    const json::Value *value = root.get("computer");
    if (!value)
      return true;
    const json::Object *object = fields.asObject(*value, "computer");
    if (!object ||
        !fields.checkKeys(
            *object, "computer",
            {"workers", "vector_lanes", "vector_terms", "partial_vector_terms",
             "command_seconds", "piece_seconds", "factor_bytes_per_second",
             "exchange_bytes_per_second", "memory_bytes_per_second",
             "replace_bytes_per_second", "collectives"}))
      return false;
    if (!machine.isShared)
      return fields.fail("computer", "expected none: the devices of a machine "
                                     "that is not shared have one each");
    ComputerRates &computer = machine.computer.emplace();
    auto read = [&](StringRef key, double least, double most, double &number) {
      return fields.readNumber(*object, "computer", key, least, most, number);
    };
    auto readWhole = [&](StringRef key, double most, double &number) {
      return read(key, 1, most, number) &&
             (number == std::floor(number) ||
              fields.fail(("computer." + key).str(), "expected an integer"));
    };
    // Files of before have none of these.
    if (object->get("piece_seconds") &&
        !read("piece_seconds", 0, mostLatency, computer.pieceSeconds))
      return false;
    return fields.getRequired(*object, "computer", "memory_bytes_per_second") &&
           readWhole("workers", mostWorkers, computer.workers) &&
           readWhole("vector_lanes", mostLanes, computer.vectorLanes) &&
           read("vector_terms", 0, mostTerms, computer.vectorTerms) &&
           read("partial_vector_terms", 0, mostTerms,
                computer.partialVectorTerms) &&
           read("command_seconds", 0, mostLatency, computer.commandSeconds) &&
           readRates(*object, "computer", "memory_bytes_per_second",
                     computer.memory) &&
           readRates(*object, "computer", "replace_bytes_per_second",
                     computer.replacing) &&
           readRates(*object, "computer", "factor_bytes_per_second",
                     computer.factors) &&
           readRates(*object, "computer", "exchange_bytes_per_second",
                     computer.exchange) &&
           readLeastSeconds(*object, computer);
  }

  /// Reads the seconds of collectives by kind and bytes.
  bool readLeastSeconds(const json::Object &object, ComputerRates &computer) {
    static constexpr StringLiteral path = "computer.collectives";
    const json::Value *value = object.get("collectives");
    if (!value)
      return true;
    const json::Object *kinds = fields.asObject(*value, path);
    if (!kinds || !fields.checkKeys(*kinds, path, getKindNames()))
      return false;
    for (const std::string &name : JsonReader::getKeys(*kinds))
      if (!readSeconds(*kinds->get(name), (path + "." + name).str(),
                       computer.collectives[static_cast<unsigned>(
                           *symbolizeCollectiveKind(name))]))
        return false;
    return true;
  }

  /// Reads rates by reuse distance, if `object`, at `parent`, has them. One
  /// number is the rate at any distance.
  bool readRates(const json::Object &object, StringRef parent, StringRef key,
                 std::vector<MemoryRate> &rates) {
    const std::string path = (parent + "." + key).str();
    const json::Value *value = object.get(key);
    if (!value)
      return true;
    if (value->getAsNumber())
      return fields.readNumber(
          object, parent, key, leastRate, mostRate,
          rates.emplace_back(MemoryRate{1, 0}).bytesPerSecond);
    const json::Object *byDistance = fields.asObject(*value, path);
    if (!byDistance)
      return false;
    std::vector<std::pair<double, double>> read;
    if (!readByNumber(*byDistance, path, "bytes", leastRate, mostRate, read))
      return false;
    if (read.empty())
      return fields.fail(path, "expected at least one rate");
    for (const auto &[bytes, rate] : read)
      rates.push_back({bytes, rate});
    return true;
  }

  /// Reads a key that is a whole number of `unit`.
  bool readCountKey(const std::string &key, StringRef path, StringRef unit,
                    double &count) {
    uint64_t number = 0;
    if (StringRef(key).getAsInteger(10, number) || number < 1 ||
        static_cast<double>(number) > mostBytes)
      return fields.fail(path, ("expected numbers of " + unit +
                                " as keys, found '" + key + "'")
                                   .str());
    count = static_cast<double>(number);
    return true;
  }

  /// Reads numbers from `least` to `most` by whole numbers of `unit`, and sorts
  /// them by these.
  bool readByNumber(const json::Object &object, StringRef path, StringRef unit,
                    double least, double most,
                    std::vector<std::pair<double, double>> &read) {
    for (const std::string &key : JsonReader::getKeys(object)) {
      auto &one = read.emplace_back(0, 0);
      if (!readCountKey(key, path, unit, one.first))
        return false;
      if (!fields.readNumber(object, path, key, least, most, one.second))
        return false;
    }
    llvm::sort(read);
    for (size_t i = 1; i < read.size(); ++i)
      if (read[i].first == read[i - 1].first)
        return fields.fail(path,
                           ("expected each number of " + unit + " once").str());
    return true;
  }

  bool readGemms(const json::Object &root, Machine &machine) {
    std::string name = "f32";
    if (!fields.readString(root, "f32_gemms", name))
      return false;
    if (name != "f32" && name != "tf32")
      return fields.fail("f32_gemms", "expected \"f32\" or \"tf32\", found \"" +
                                          name + "\"");
    if (name == "tf32" && machine.getFlopsPerSecond(ComputeType::TF32) == 0)
      return fields.fail("f32_gemms",
                         "expected \"f32\", found \"tf32\", of which the "
                         "device has no FLOP/s");
    machine.f32MatmulType =
        name == "tf32" ? ComputeType::TF32 : ComputeType::F32;
    return true;
  }

  bool readDefaultLink(const json::Object &root, bool isRequired,
                       Machine &machine) {
    const json::Value *link = root.get("default_link");
    if (!link && isRequired)
      fields.getRequired(root, "", "default_link");
    if (!link)
      return !isRequired;
    // It is the link of all axes that are not named.
    machine.devicesPerHost = 0;
    return readLink(*link, "default_link", machine.defaultLink);
  }

  bool readLink(const json::Value &value, StringRef path, Link &link) {
    if (std::optional<StringRef> name = value.getAsString()) {
      const NamedLink *known = findByName(getBuiltInLinks(), *name);
      if (!known)
        return fields.fail(path, "unknown link '" + *name + "'" +
                                     suggest(name->str(), getLinkNames()));
      link = known->link;
      return true;
    }
    const json::Object *object = fields.asObject(value, path);
    return object &&
           fields.checkKeys(*object, path,
                            {"bytes_per_second", "latency_seconds"}) &&
           fields.readNumber(*object, path, "bytes_per_second", leastRate,
                             mostRate, link.bytesPerSecond) &&
           fields.readNumber(*object, path, "latency_seconds", 0, mostLatency,
                             link.latencySeconds);
  }

  /// The object at `key`, whose keys are types; null after an error.
  const json::Object *getTypes(const json::Object &root, StringRef key) {
    const json::Object *types = fields.asObject(*root.get(key), key.str());
    return types && fields.checkKeys(*types, key.str(), getTypeNames())
               ? types
               : nullptr;
  }

  /// Reads FLOP/s by type, short side and its elements.
  bool readShortSides(const json::Object &root, Machine &machine) {
    if (!root.get("gemms"))
      return true;
    const json::Object *types = getTypes(root, "gemms");
    if (!types)
      return false;
    for (const std::string &type : JsonReader::getKeys(*types)) {
      const std::string path = "gemms." + type;
      const auto number = static_cast<unsigned>(find(getTypeNames(), type) -
                                                getTypeNames().begin());
      if (machine.flopsPerSecond[number] == 0)
        return fields.fail(path, "expected none: the device has no FLOP/s of "
                                 "this type");
      if (type != "bf16" && type != "f64" &&
          number != static_cast<unsigned>(machine.f32MatmulType))
        return fields.fail(
            path,
            "expected none: GEMMs of f32 compute in " +
                getTypeNames()[static_cast<unsigned>(machine.f32MatmulType)] +
                " ('f32_gemms')");
      if (machine.computer && type != "bf16")
        return fields.fail(path, "expected none: 'computer' has what vectors "
                                 "and factors take");
      const json::Object *sides = fields.asObject(*types->get(type), path);
      if (!sides ||
          !fields.checkKeys(*sides, path, {"rows", "columns", "terms"}))
        return false;
      ShortSides &shortSides = machine.shortSides[number];
      auto read = [&](StringRef name, ShortSides::Side &side) {
        const json::Value *rates = sides->get(name);
        return !rates || readSide(*rates, path + "." + name.str(),
                                  machine.flopsPerSecond[number], side);
      };
      if (!read("rows", shortSides.rows) ||
          !read("columns", shortSides.columns) ||
          !read("terms", shortSides.terms))
        return false;
      if (shortSides.isEmpty())
        return fields.fail(path, "expected at least one side");
    }
    return true;
  }

  /// Reads FLOP/s by elements, beside those of large GEMMs.
  bool readSide(const json::Value &value, const std::string &path,
                double ofLarge, ShortSides::Side &side) {
    const json::Object *rates = fields.asObject(value, path);
    if (!rates ||
        !readByNumber(*rates, path, "elements", leastRate, mostRate, side))
      return false;
    if (side.empty())
      return fields.fail(path, "expected at least one rate");
    for (size_t i = 1; i < side.size(); ++i)
      if (side[i].second < side[i - 1].second)
        return fields.fail(path, "expected that more elements have no lower "
                                 "rate");
    for (auto &[elements, rate] : side)
      rate = std::max(0.0, ofLarge / rate - 1);
    return true;
  }

  /// Reads seconds by type, rows, columns and terms, in all combinations.
  bool readGemmTimes(const json::Object &root, Machine &machine) {
    static constexpr StringLiteral key = "gemm_seconds";
    if (!root.get(key))
      return true;
    const json::Object *types = getTypes(root, key);
    if (!types)
      return false;
    if (machine.computer)
      return fields.fail(key, "expected none: 'computer' has what vectors and "
                              "factors take");
    if (root.get("gemms"))
      return fields.fail(key, "expected either these or 'gemms'");
    for (const std::string &type : JsonReader::getKeys(*types)) {
      const std::string path = (key + "." + type).str();
      const auto number = static_cast<unsigned>(find(getTypeNames(), type) -
                                                getTypeNames().begin());
      if (machine.flopsPerSecond[number] == 0)
        return fields.fail(path, "expected none: the device has no FLOP/s of "
                                 "this type");
      if (!readSides(*types->get(type), path, 0, machine.gemmTimes[number]))
        return false;
    }
    return true;
  }

  /// Reads factors by type, form and elements of a side.
  bool readGemmFactors(const json::Object &root, Machine &machine) {
    static constexpr StringLiteral key = "gemm_factors";
    if (!root.get(key))
      return true;
    const json::Object *types = getTypes(root, key);
    if (!types)
      return false;
    for (const std::string &type : JsonReader::getKeys(*types)) {
      const std::string path = (key + "." + type).str();
      GemmTimes &times =
          machine
              .gemmTimes[find(getTypeNames(), type) - getTypeNames().begin()];
      if (times.isEmpty())
        return fields.fail(path, "expected none: 'gemm_seconds' has no times "
                                 "of this type");
      const json::Object *forms = fields.asObject(*types->get(type), path);
      if (!forms ||
          !fields.checkKeys(*forms, path,
                            {"transpose_lhs", "transpose_rhs", "sums_rhs"}))
        return false;
      auto read = [&](StringRef form, GemmTimes::Factors &factors) {
        const json::Value *given = forms->get(form);
        if (!given)
          return true;
        const std::string ofForm = path + "." + form.str();
        const json::Object *byElements = fields.asObject(*given, ofForm);
        if (!byElements || !readByNumber(*byElements, ofForm, "elements",
                                         leastFactor, mostFactor, factors))
          return false;
        return !factors.empty() ||
               fields.fail(ofForm, "expected at least one factor");
      };
      if (!read("transpose_lhs", times.transposeLhs) ||
          !read("transpose_rhs", times.transposeRhs) ||
          !read("sums_rhs", times.sumsRhs))
        return false;
    }
    return true;
  }

  /// Reads the seconds by side number `side`, and in each those by the next.
  bool readSides(const json::Value &value, const std::string &path, size_t side,
                 GemmTimes &times) {
    const json::Object *object = fields.asObject(value, path);
    if (!object)
      return false;
    std::vector<double> elements;
    std::vector<std::pair<double, double>> seconds;
    if (side + 1 == times.sides.size()) {
      if (!readByNumber(*object, path, "elements", leastSeconds, mostLatency,
                        seconds))
        return false;
      for (auto [number, time] : seconds) {
        elements.push_back(number);
        times.seconds.push_back(time);
      }
    } else {
      std::vector<std::pair<double, std::string>> keys;
      for (const std::string &key : JsonReader::getKeys(*object)) {
        auto &[number, name] = keys.emplace_back(0, key);
        if (!readCountKey(key, path, "elements", number))
          return false;
      }
      llvm::sort(keys);
      for (const auto &[number, key] : keys) {
        elements.push_back(number);
        if (!readSides(*object->get(key), path + "." + key, side + 1, times))
          return false;
      }
    }
    if (elements.empty())
      return fields.fail(path, "expected at least one number of elements");
    if (std::adjacent_find(elements.begin(), elements.end()) != elements.end())
      return fields.fail(path, "expected each number of elements once");
    std::vector<double> &known = times.sides[side];
    if (!known.empty() && known != elements)
      return fields.fail(path, "expected the same numbers of elements as for "
                               "the other sides before");
    known = std::move(elements);
    return true;
  }

  /// Reads what the work on a device takes besides the work.
  bool readStarts(const json::Object &root, Machine &machine) {
    if (machine.computer && !machine.memory.empty())
      return fields.fail("device.memory_bytes_per_second",
                         "expected a number: 'computer' has the rates of "
                         "devices that share one by reuse distance");
    if (!machine.isShared && root.get("concurrent_command_seconds"))
      return fields.fail("concurrent_command_seconds",
                         "expected none: the devices of a machine that is not "
                         "shared have one each");
    auto read = [&](StringRef key, double least, double most, double &number,
                    StringRef ofComputer) {
      if (!root.get(key))
        return true;
      if (machine.computer)
        return fields.fail(key, "expected none: " + ofComputer);
      return fields.readNumber(root, "", key, least, most, number);
    };
    static constexpr StringLiteral hasStarts =
        "'computer' has that of devices that share one";
    return read("command_seconds", 0, mostLatency, machine.commandSeconds,
                hasStarts) &&
           read("step_seconds", 0, mostLatency, machine.stepSeconds,
                hasStarts) &&
           read("concurrent_command_seconds", 0, mostLatency,
                machine.concurrentCommandSeconds, hasStarts) &&
           read("host_bytes_per_second", leastRate, mostRate,
                machine.hostBytesPerSecond,
                "virtual devices work in the memory of the host");
  }

  bool readOverlap(const json::Object &root, Machine &machine) {
    if (!root.get("overlap"))
      return true;
    if (machine.isShared)
      return fields.fail("overlap",
                         "expected none: the cores that compute move the data "
                         "of virtual devices as well");
    return fields.readNumber(root, "", "overlap", 0, 1, machine.overlap);
  }

  /// Of all kinds that are measured.
  static std::vector<std::string> getKindNames() {
    std::vector<std::string> names;
    for (unsigned kind = 0; kind <= getMaxEnumValForCollectiveKind(); ++kind)
      if (auto known = symbolizeCollectiveKind(kind);
          known && *known != CollectiveKind::Send)
        names.push_back(stringifyCollectiveKind(*known).str());
    return names;
  }

  /// Reads seconds by kind, group and bytes.
  bool readCollectives(const json::Object &root, Machine &machine) {
    const json::Value *value = root.get("collectives");
    if (!value)
      return true;
    const json::Object *kinds = fields.asObject(*value, "collectives");
    if (!kinds)
      return false;
    if (machine.computer)
      return fields.fail("collectives",
                         "expected none: those of virtual devices read and "
                         "write memory, whose rates 'computer' has");
    if (!machine.axisLinks.empty() || machine.devicesPerHost > 0)
      return fields.fail("collectives",
                         "expected neither 'axes' nor hosts beside them: the "
                         "times are of one kind of link between all devices, "
                         "which 'default_link' has for whatever is not "
                         "measured");
    if (!fields.checkKeys(*kinds, "collectives", getKindNames()))
      return false;
    for (const std::string &name : JsonReader::getKeys(*kinds)) {
      std::string path = "collectives." + name;
      const json::Object *groups = fields.asObject(*kinds->get(name), path);
      if (!groups)
        return false;
      for (const std::string &group : JsonReader::getKeys(*groups)) {
        MeasuredCollective measured{*symbolizeCollectiveKind(name), 0, 1, {}};
        if (!readGroup(group, path, measured) ||
            !readSeconds(*groups->get(group), path + "." + group,
                         measured.seconds))
          return false;
        for (const MeasuredCollective &other : machine.collectives)
          if (other.kind == measured.kind &&
              other.devices == measured.devices &&
              other.apart == measured.apart)
            return fields.fail(path, "expected each group once, found '" +
                                         group + "' again");
        machine.collectives.push_back(std::move(measured));
      }
    }
    return true;
  }

  /// Reads "devices=4,apart=2".
  bool readGroup(const std::string &text, StringRef path,
                 MeasuredCollective &measured) {
    std::string error;
    std::optional<MeshSpec> spec = parseMeshSpec(text, error);
    bool isGroup = spec && (spec->size() == 1 || spec->size() == 2) &&
                   (*spec)[0].first == "devices" && (*spec)[0].second > 1 &&
                   (spec->size() == 1 || (*spec)[1].first == "apart");
    if (!isGroup)
      return fields.fail(path, "expected groups such as \"devices=4\" or "
                               "\"devices=4,apart=2\", of at least two "
                               "devices, found '" +
                                   text + "'");
    measured.devices = (*spec)[0].second;
    measured.apart = spec->size() == 2 ? (*spec)[1].second : 1;
    return true;
  }

  /// Reads seconds by bytes.
  bool readSeconds(const json::Value &value, StringRef path,
                   std::vector<std::pair<double, double>> &seconds) {
    const json::Object *object = fields.asObject(value, path);
    if (!object)
      return false;
    if (!readByNumber(*object, path, "bytes", leastSeconds, mostLatency,
                      seconds))
      return false;
    if (seconds.empty())
      return fields.fail(path, "expected at least one time");
    for (size_t i = 1; i < seconds.size(); ++i)
      if (seconds[i].second < seconds[i - 1].second)
        return fields.fail(path, "expected that more bytes take no less time");
    return true;
  }

  bool readAxes(const json::Object &root, Machine &machine) {
    const json::Value *value = root.get("axes");
    if (!value)
      return true;
    const json::Object *axes = fields.asObject(*value, "axes");
    if (!axes)
      return false;
    for (const std::string &name : JsonReader::getKeys(*axes)) {
      Link link;
      if (!readLink(*axes->get(name), "axes." + name, link))
        return false;
      machine.axisLinks.emplace_back(name, link);
    }
    return true;
  }

  /// Reads an integer of at least 1.
  bool readCount(const json::Object &object, StringRef key, int64_t &count) {
    double number = count;
    if (!fields.readNumber(object, "hosts", key, 1, mostDevices, number))
      return false;
    count = static_cast<int64_t>(number);
    return static_cast<double>(count) == number ||
           fields.fail(("hosts." + key).str(), "expected an integer");
  }

  bool readHosts(const json::Object &root, Machine &machine) {
    const json::Value *value = root.get("hosts");
    if (!value)
      return true;
    const json::Object *hosts = fields.asObject(*value, "hosts");
    if (!hosts ||
        !fields.checkKeys(*hosts, "hosts", {"devices", "link", "ports"}))
      return false;
    if (machine.isShared)
      return fields.fail("hosts", "expected none: the devices of a shared "
                                  "machine are virtual ones on one device");
    const json::Value *link = fields.getRequired(*hosts, "hosts", "link");
    machine.portsPerHost = 1;
    return link && readCount(*hosts, "devices", machine.devicesPerHost) &&
           readLink(*link, "hosts.link", machine.hostLink) &&
           (!hosts->get("ports") ||
            readCount(*hosts, "ports", machine.portsPerHost));
  }

  StringRef file;
  JsonReader fields;
};

} // namespace

Expected<Machine> shardc::parseMachine(StringRef text, StringRef file) {
  Expected<json::Value> root = parseJson(text, file);
  if (!root)
    return root.takeError();
  Machine machine;
  MachineReader reader(file);
  if (!reader.read(*root, machine))
    return reader.takeError();
  return machine;
}

Expected<Machine> shardc::loadMachine(StringRef nameOrFile) {
  if (const Machine *machine = findByName(getBuiltInMachines(), nameOrFile))
    return *machine;
  std::string name = nameOrFile.str();
  // It is read more than once, which a pipe cannot be.
  if (std::string error = checkInputSize(name, maxMachineBytes); !error.empty())
    return createStringError(inconvertibleErrorCode(), error);
  auto buffer = MemoryBuffer::getFile(name, /*IsText=*/true);
  if (buffer)
    return parseMachine((*buffer)->getBuffer(), name);
  auto error = [](const Twine &message) {
    return createStringError(inconvertibleErrorCode(), message);
  };
  if (findByName(getBuiltInLinks(), nameOrFile))
    return error("'" + name +
                 "' is a link between devices; expected a machine: a file or "
                 "one of " +
                 join(getMachineNames(), ", "));
  // A name that looks like a path means a file.
  if (nameOrFile.find_first_of("./") != StringRef::npos)
    return error("cannot read '" + name + "': " + buffer.getError().message());
  return error("unknown machine '" + name + "'" +
               suggest(name, getMachineNames()));
}
