//===- Mlp.cpp - Source modules of multi-layer perceptrons ----------------===//
//
// The module is written as text, laid out for people, and parsed back for a
// caller that needs a module. So users read the text that is compiled.
//
//===----------------------------------------------------------------------===//

#include "shardc/Models/Mlp.h"

#include "shardc/Models/Strategy.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

/// Writes one module.
class MlpPrinter {
public:
  explicit MlpPrinter(const MlpSpec &spec)
      : spec(spec), strategy(spec.strategy), mesh(getMesh(spec, strategy)) {}

  std::string print();

private:
  /// A linear layer and what stands beside it.
  struct Layer {
    std::string index;
    int64_t in, out;
    /// Strategies with tensor parallelism shard it by column if it is even, by
    /// row if it is odd.
    int64_t role = 0;
    bool normalizesInput = false, normalizesOutput = false;
    bool isActivated = false;
    /// Whether the value in front of the last norm of an input is added.
    bool endsBlock = false;
  };

  void collectLayers();
  void collectArguments();
  void addArgument(std::string name, std::vector<int64_t> shape,
                   std::string element, std::string role,
                   std::string annotations = "");
  void addParameter(std::string name, int64_t role, std::vector<int64_t> shape,
                    std::string init);
  void printBody();
  std::string printTraining();
  std::string printPipeline();
  std::string printRecompute();
  std::string printMesh();

  /// The alias of a sharding, declared on first use.
  std::string getAlias(const DimAxes &axes);
  std::string getTensor(std::vector<int64_t> shape,
                        const std::string &element = "f32");

  bool hasStates() const { return spec.optimizer != "sgd"; }

  const MlpSpec &spec;
  Strategy strategy;
  MeshSpec mesh;
  std::vector<Layer> layers;
  /// Aliases and the shardings they stand for, in order of first use.
  std::vector<std::pair<std::string, std::string>> aliases;
  std::vector<std::string> arguments;
  std::string body;
};

} // namespace

/// A number as MLIR reads floats: always with a decimal point.
static std::string printNumber(double value) {
  std::string text;
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text)
        << llvm::format(("%." + std::to_string(digits) + "g").c_str(), value);
    if (std::stod(text) == value)
      break;
  }
  if (text.find_first_of(".") == std::string::npos) {
    size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

std::string MlpPrinter::getTensor(std::vector<int64_t> shape,
                                  const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string MlpPrinter::getAlias(const DimAxes &axes) {
  std::vector<std::string> dims;
  for (const std::vector<std::string> &dim : axes) {
    std::vector<std::string> quoted;
    for (const std::string &axis : dim)
      quoted.push_back("\"" + axis + "\"");
    dims.push_back("{" + llvm::join(quoted, ", ") + "}");
  }
  std::string text =
      "#shardc.sharding<@mesh, [" + llvm::join(dims, ", ") + "]>";
  std::string name = "#" + nameSharding(axes);
  if (llvm::none_of(aliases, [&](const auto &it) { return it.first == name; }))
    aliases.emplace_back(name, text);
  return name;
}

void MlpPrinter::addArgument(std::string name, std::vector<int64_t> shape,
                             std::string element, std::string role,
                             std::string annotations) {
  arguments.push_back("%" + name + ": " + getTensor(shape, element) +
                      " {shardc.role = #shardc." + role + annotations + "}");
}

void MlpPrinter::addParameter(std::string name, int64_t role,
                              std::vector<int64_t> shape, std::string init) {
  std::string annotations;
  // Under none and dp, parameters are left to propagation, which leaves them
  // replicated. Under other strategies dimensions without an axis are closed.
  if (strategy.shardsParameters())
    annotations =
        ", shardc.sharding = " +
        getAlias(getParameterAxes(strategy, role, shape, spec.fsdpMinSize));
  DimAxes first(shape.size());
  if (!strategy.stateAxis.empty() && hasStates()) {
    first[0] = {strategy.stateAxis};
    annotations += ", shardc.state_sharding = " + getAlias(first);
  }
  if (!strategy.gradientAxis.empty()) {
    first[0] = {strategy.gradientAxis};
    annotations += ", shardc.grad_sharding = " + getAlias(first);
  }
  addArgument(name, shape, "f32", "parameter<\"" + name + "\", " + init + ">",
              annotations);
}

void MlpPrinter::collectArguments() {
  std::string rows, labelRows;
  bool isClassifier = spec.loss == "softmax_cross_entropy";
  if (!strategy.rowAxes.empty()) {
    rows = ", shardc.sharding = " + getAlias({strategy.rowAxes, {}});
    labelRows = isClassifier
                    ? ", shardc.sharding = " + getAlias({strategy.rowAxes})
                    : rows;
  }
  addArgument("x", {spec.batchSize, spec.layers.front()}, "f32", "input<\"x\">",
              rows);
  if (isClassifier)
    addArgument("y", {spec.batchSize}, "i32", "label<\"y\">", labelRows);
  else
    addArgument("y", {spec.batchSize, spec.layers.back()}, "f32",
                "label<\"y\">", labelRows);

  // The scale that keeps variances through saturating activations is
  // Glorot's, through the others He's.
  bool saturates = spec.activation == "tanh" || spec.activation == "sigmoid";
  std::string init = saturates ? "glorot_normal" : "he_normal";
  for (const Layer &layer : layers) {
    auto addNorm = [&](int64_t role, int64_t size) {
      addParameter("scale" + layer.index, role, {size}, "constant(1.0)");
      addParameter("shift" + layer.index, role, {size}, "constant(0.0)");
    };
    // What comes into a block is whole.
    if (layer.normalizesInput)
      addNorm(/*role=*/1, layer.in);
    addParameter("w" + layer.index, layer.role, {layer.in, layer.out}, init);
    addParameter("b" + layer.index, layer.role, {layer.out}, "constant(0.0)");
    if (layer.normalizesOutput)
      addNorm(layer.role, layer.out);
  }
}

/// The linear layers in their order.
void MlpPrinter::collectLayers() {
  int64_t numLayers = spec.layers.size() - 1;
  auto add = [&](Layer layer) {
    layer.index = std::to_string(layers.size());
    layers.push_back(layer);
  };
  for (int64_t i = 0; i < numLayers; ++i) {
    Layer layer;
    layer.in = spec.layers[i];
    layer.out = spec.layers[i + 1];
    layer.role = i;
    bool isLast = i + 1 == numLayers;
    bool isBeforeBlocks = spec.residualBlocks > 0 && i + 2 == numLayers;
    layer.isActivated = !isLast && !isBeforeBlocks;
    layer.normalizesOutput = layer.isActivated && spec.layerNorm;
    // A block's first layer is sharded by column and its second by row, so that
    // the values between blocks are whole.
    if (spec.residualBlocks > 0 && (isLast || isBeforeBlocks))
      layer.role = 1;
    layer.normalizesInput = isLast && spec.residualBlocks > 0;
    add(layer);
    if (!isBeforeBlocks)
      continue;
    Layer first, second;
    first.in = first.out = second.in = second.out = layer.out;
    first.role = 0;
    first.normalizesInput = first.isActivated = true;
    second.role = 1;
    second.endsBlock = true;
    for (int64_t block = 0; block < spec.residualBlocks; ++block) {
      add(first);
      add(second);
    }
  }
}

void MlpPrinter::printBody() {
  llvm::raw_string_ostream os(body);
  std::string value = "%x", blockInput;
  for (const Layer &layer : layers) {
    std::string type = getTensor({spec.batchSize, layer.out});
    auto step = [&](std::string name, std::string text) {
      os << "    %" << name << layer.index << " = shardc." << text << "\n";
      value = "%" + name + layer.index;
    };
    auto addNorm = [&](int64_t size) {
      step("n", "layer_norm " + value + ", %scale" + layer.index + ", %shift" +
                    layer.index +
                    " epsilon = 1.0e-6 : " + getTensor({spec.batchSize, size}) +
                    ", " + getTensor({size}));
    };
    if (layer.normalizesInput) {
      blockInput = value;
      addNorm(layer.in);
    }
    step("z", "linear " + value + ", %w" + layer.index + ", %b" + layer.index +
                  " : " + getTensor({spec.batchSize, layer.in}) + ", " +
                  getTensor({layer.in, layer.out}) + ", " +
                  getTensor({layer.out}) + " -> " + type);
    if (layer.endsBlock)
      step("r", "add " + blockInput + ", " + value + " : " + type);
    if (!layer.isActivated)
      continue;
    if (layer.normalizesOutput)
      addNorm(layer.out);
    std::string name =
        spec.activation == "gelu_tanh" ? "gelu tanh" : spec.activation;
    step("h", name + " " + value + " : " + type);
    if (spec.dropout > 0)
      step("d", "dropout " + value + " rate = " + printNumber(spec.dropout) +
                    " stream = " + layer.index + " : " + type);
  }
  std::string type = getTensor({spec.batchSize, spec.layers.back()});
  os << "    %loss = shardc." << spec.loss << " " << value << ", %y : " << type;
  if (spec.loss == "softmax_cross_entropy")
    os << ", " << getTensor({spec.batchSize}, "i32");
  os << " -> tensor<f32>\n    return %loss : tensor<f32>\n";
}

/// "cosine,decay_steps=100" as an attribute has it: "<cosine, decay_steps =
/// 100>".
static std::string printSchedule(llvm::StringRef text) {
  auto [name, rest] = text.split(',');
  std::string printed = "<" + name.str();
  while (!rest.empty()) {
    auto [entry, others] = rest.split(',');
    auto [key, digits] = entry.split('=');
    double value = 0;
    digits.getAsDouble(value);
    bool isInteger = value == std::floor(value) && value < 1e15;
    printed += ", " + key.str() + " = " +
               (isInteger ? std::to_string(static_cast<int64_t>(value))
                          : printNumber(value));
    rest = others;
  }
  return printed + ">";
}

std::string MlpPrinter::printPipeline() {
  if (strategy.pipelineAxis.empty())
    return "";
  std::string schedule = spec.pipelineSchedule;
  std::string text = ",\n    shardc.pipeline = #shardc.pipeline<axis = \"" +
                     strategy.pipelineAxis + "\", schedule = \"" +
                     (schedule.empty() ? "1f1b" : schedule) + "\"";
  if (spec.virtualStages.value_or(1) > 1)
    text += ", chunks = " + std::to_string(*spec.virtualStages);
  return text + ">";
}

std::string MlpPrinter::printRecompute() {
  if (spec.recompute.empty() || spec.recompute == "none")
    return "";
  return ",\n    shardc.recompute = \"" + spec.recompute + "\"";
}

std::string MlpPrinter::printTraining() {
  std::string text = "#shardc.training<loss = @loss, optimizer = <" +
                     spec.optimizer +
                     ", learning_rate = " + printNumber(spec.learningRate);
  if (spec.optimizer == "momentum")
    text += ", momentum = " + printNumber(spec.momentum.value_or(0.9));
  for (const auto &[name, number] : spec.getMoments())
    if (number)
      text += std::string(", ") + name + " = " + printNumber(*number);
  if (spec.weightDecay)
    text += ", weight_decay = " + printNumber(*spec.weightDecay);
  text += ">";
  if (spec.clipNorm)
    text += ", clip_norm = " + printNumber(*spec.clipNorm);
  if (!spec.schedule.empty())
    text += ", schedule = " + printSchedule(spec.schedule);
  if (spec.microbatches > 1)
    text += ", microbatches = " + std::to_string(spec.microbatches);
  return text + ">";
}

std::string MlpPrinter::printMesh() {
  if (mesh.empty())
    return "";
  std::vector<std::string> axes;
  for (const auto &[name, size] : mesh)
    axes.push_back("\"" + name + "\" = " + std::to_string(size));
  return "  shardc.mesh @mesh <[" + llvm::join(axes, ", ") + "]>\n\n";
}

std::string MlpPrinter::print() {
  collectLayers();
  collectArguments();
  printBody();
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const auto &[name, sharding] : aliases)
    os << name << " = " << sharding << "\n";
  if (!aliases.empty())
    os << "\n";
  os << "module @mlp attributes {\n    shardc.training = " << printTraining()
     << printPipeline() << printRecompute() << "} {\n"
     << printMesh() << "  func.func @loss(\n      "
     << llvm::join(arguments, ",\n      ") << ") -> tensor<f32> {\n"
     << body << "  }\n}\n";
  return text;
}

std::string shardc::printMlp(const MlpSpec &spec) {
  return MlpPrinter(spec).print();
}

OwningOpRef<ModuleOp> shardc::buildMlp(MLIRContext &context,
                                       const MlpSpec &spec, StringRef name) {
  context.loadAllAvailableDialects();
  return parseSourceString<ModuleOp>(printMlp(spec), ParserConfig(&context),
                                     name);
}
