//===- MlpOptions.cpp - The options of an MLP by name ---------------------===//

#include "shardc/Models/MlpOptions.h"

#include "shardc/Support/Suggest.h"

#include "llvm/ADT/StringExtras.h"

#include <type_traits>
#include <variant>

using namespace llvm;
using namespace shardc;

namespace {

using Sizes = std::vector<int64_t>;

struct MlpOption {
  const char *name;
  std::variant<std::string MlpSpec::*, int64_t MlpSpec::*, double MlpSpec::*,
               bool MlpSpec::*, std::optional<int64_t> MlpSpec::*,
               std::optional<double> MlpSpec::*, Sizes MlpSpec::*,
               MeshSpec MlpSpec::*>
      member;
};

} // namespace

static ArrayRef<MlpOption> getTable() {
  static const MlpOption table[] = {
      {"layers", &MlpSpec::layers},
      {"activation", &MlpSpec::activation},
      {"layer-norm", &MlpSpec::layerNorm},
      {"residual-blocks", &MlpSpec::residualBlocks},
      {"dropout", &MlpSpec::dropout},
      {"loss", &MlpSpec::loss},
      {"optimizer", &MlpSpec::optimizer},
      {"learning-rate", &MlpSpec::learningRate},
      {"schedule", &MlpSpec::schedule},
      {"momentum", &MlpSpec::momentum},
      {"b1", &MlpSpec::b1},
      {"b2", &MlpSpec::b2},
      {"eps", &MlpSpec::eps},
      {"weight-decay", &MlpSpec::weightDecay},
      {"clip-norm", &MlpSpec::clipNorm},
      {"strategy", &MlpSpec::strategy},
      {"stages", &MlpSpec::stages},
      {"pipeline-schedule", &MlpSpec::pipelineSchedule},
      {"virtual-stages", &MlpSpec::virtualStages},
      {"recompute", &MlpSpec::recompute},
      {"fsdp-min-size", &MlpSpec::fsdpMinSize},
      {"mesh", &MlpSpec::mesh},
      {"batch-size", &MlpSpec::batchSize},
      {"microbatches", &MlpSpec::microbatches},
  };
  return table;
}

std::vector<std::string> shardc::getMlpOptionNames() {
  std::vector<std::string> names;
  for (const MlpOption &option : getTable())
    names.push_back(option.name);
  return names;
}

static std::string refuse(StringRef text, StringRef expected) {
  return ("'" + text + "' is not " + expected).str();
}

// Each reads the whole of `text` and returns an error or "".

static std::string readValue(StringRef text, std::string &value) {
  value = text.str();
  return "";
}

static std::string readValue(StringRef text, int64_t &value) {
  return text.getAsInteger(10, value) ? refuse(text, "an integer") : "";
}

static std::string readValue(StringRef text, double &value) {
  return text.getAsDouble(value) ? refuse(text, "a number") : "";
}

static std::string readValue(StringRef text, bool &value) {
  value = text == "1";
  return text == "0" || text == "1" ? "" : refuse(text, "0 or 1");
}

static std::string readValue(StringRef text, Sizes &value) {
  value.clear();
  for (StringRef size : split(text, ','))
    if (std::string error = readValue(size, value.emplace_back());
        !error.empty())
      return error;
  return "";
}

static std::string readValue(StringRef text, MeshSpec &value) {
  std::string error;
  if (std::optional<MeshSpec> mesh = parseMeshSpec(text.str(), error))
    value = *mesh;
  return error;
}

template <typename T>
static std::string readValue(StringRef text, std::optional<T> &value) {
  return readValue(text, value.emplace());
}

std::string shardc::setMlpOption(StringRef name, StringRef text,
                                 MlpSpec &spec) {
  for (const MlpOption &option : getTable()) {
    if (option.name != name)
      continue;
    std::string error =
        std::visit([&](auto member) { return readValue(text, spec.*member); },
                   option.member);
    return error.empty() ? "" : (name + ": " + error).str();
  }
  return ("unknown option '" + name + "'" +
          suggest(name.str(), getMlpOptionNames()))
      .str();
}
