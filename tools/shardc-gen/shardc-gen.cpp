//===- shardc-gen.cpp - Writes model files --------------------------------===//
//
// Prints the source module of an MLP, sharded by a named strategy.
//
//===----------------------------------------------------------------------===//

#include "shardc/Models/Mlp.h"
#include "shardc/Support/ExitCodes.h"
#include "shardc/Support/WriteErrors.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("shardc-gen options");

template <typename T>
using Flag = cl::opt<T>;

static cl::list<int64_t> layers("layers", cl::CommaSeparated, cl::cat(category),
                                cl::value_desc("10,32,16,1"),
                                cl::desc("Sizes from input to output"));
static Flag<std::string>
    activation("activation", cl::cat(category), cl::init("relu"),
               cl::value_desc("relu|gelu|gelu_tanh|silu|tanh|sigmoid"),
               cl::desc("After every layer but the last"));
static Flag<bool> layerNorm("layer-norm", cl::cat(category),
                            cl::desc("A layer norm before each activation"));
static Flag<double> dropout("dropout", cl::cat(category), cl::init(0),
                            cl::value_desc("rate"),
                            cl::desc("Dropout after each activation"));
static Flag<std::string> loss("loss", cl::cat(category), cl::init("mse"),
                              cl::value_desc("mse|softmax_cross_entropy"),
                              cl::desc("What is minimised"));
static Flag<std::string> optimizer("optimizer", cl::cat(category),
                                   cl::init("sgd"),
                                   cl::value_desc("sgd|momentum|adam|adamw"),
                                   cl::desc("How it is minimised"));
static Flag<double> learningRate("learning-rate", cl::cat(category),
                                 cl::init(0.01), cl::value_desc("rate"),
                                 cl::desc("Learning rate"));
static Flag<double> momentum("momentum", cl::cat(category), cl::init(0.9),
                             cl::value_desc("factor"),
                             cl::desc("Of the momentum optimizer"));
static Flag<double> weightDecay("weight-decay", cl::cat(category), cl::init(0),
                                cl::value_desc("factor"),
                                cl::desc("Decoupled for adamw, else L2"));
static Flag<double> clipNorm("clip-norm", cl::cat(category), cl::init(0),
                             cl::value_desc("norm"),
                             cl::desc("Largest global norm of the gradients"));
static Flag<std::string> strategy(
    "strategy", cl::cat(category), cl::init("none"),
    cl::value_desc("none|dp|zero1|zero2|fsdp|tp|dp+tp|fsdp+tp|hsdp|hsdp+tp"),
    cl::desc("What is sharded over which mesh axis"));
static Flag<int64_t>
    fsdpMinSize("fsdp-min-size", cl::cat(category), cl::init(0),
                cl::value_desc("elements"),
                cl::desc("Smaller parameters stay replicated under fsdp"));
static Flag<std::string> mesh("mesh", cl::cat(category),
                              cl::value_desc("data=4,model=2"),
                              cl::desc("Mesh axes and their sizes"));
static Flag<int64_t> batchSize("batch-size", cl::cat(category), cl::init(128),
                               cl::value_desc("rows"),
                               cl::desc("Global batch size"));
static Flag<int64_t>
    microbatches("microbatches", cl::cat(category), cl::init(1),
                 cl::value_desc("number"),
                 cl::desc("Parts in which a step takes the batch"));
static Flag<std::string>
    output("o", cl::cat(category), cl::init("-"), cl::value_desc("file"),
           cl::desc("Where to write (-: standard output)"));

static int fail(const std::string &message) {
  llvm::errs() << "shardc-gen: error: " << message << '\n';
  return static_cast<int>(ExitCode::Usage);
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "shardc " << SHARDC_VERSION << '\n'; });
  cl::ParseCommandLineOptions(
      argc, argv, "Writes the model file of a multi-layer perceptron\n");

  MlpSpec spec;
  if (layers.empty())
    return fail("--layers: expected sizes such as --layers=10,32,16,1");
  spec.layers.assign(layers.begin(), layers.end());
  spec.activation = activation;
  spec.layerNorm = layerNorm;
  spec.dropout = dropout;
  spec.loss = loss;
  spec.optimizer = optimizer;
  spec.learningRate = learningRate;
  if (momentum.getNumOccurrences())
    spec.momentum = momentum;
  if (weightDecay.getNumOccurrences())
    spec.weightDecay = weightDecay;
  if (clipNorm.getNumOccurrences())
    spec.clipNorm = clipNorm;
  spec.strategy = strategy;
  spec.fsdpMinSize = fsdpMinSize;
  spec.batchSize = batchSize;
  spec.microbatches = microbatches;
  if (mesh.getNumOccurrences()) {
    std::string error;
    std::optional<MeshSpec> parsed = parseMeshSpec(mesh, error);
    if (!parsed)
      return fail("--mesh: " + error);
    spec.mesh = *parsed;
  }
  if (std::string error = checkMlp(spec); !error.empty())
    return fail("--" + error);
  if (spec.strategy == "zero1" && spec.optimizer == "sgd")
    llvm::errs() << "shardc-gen: note: sgd has no states for zero1 to shard; "
                    "the model is that of dp\n";

  std::error_code error;
  llvm::ToolOutputFile file(output, error, llvm::sys::fs::OF_Text);
  if (error)
    return fail("cannot write '" + output + "': " + error.message());
  file.os() << printMlp(spec);
  if (std::string message = finishOutput(file.os(), output); !message.empty())
    return fail(message);
  file.keep();
  return static_cast<int>(ExitCode::Ok);
}
