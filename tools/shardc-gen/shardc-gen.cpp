//===- shardc-gen.cpp - Writes model files --------------------------------===//
//
// Prints the source module of an MLP, sharded by a named strategy.
//
//===----------------------------------------------------------------------===//

#include "shardc/Models/MlpOptions.h"
#include "shardc/Support/Arguments.h"
#include "shardc/Support/ExitCodes.h"
#include "shardc/Support/OutputFiles.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/WriteErrors.h"
#include "shardc/Support/WriteFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

#include <vector>

using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("shardc-gen options");

namespace {

/// A flag with a value, which sets an option of the MLP. The help shows its
/// default as `saying`, if the value is not telling. LLVM sees it as a text, so
/// that all tools refuse numbers with the same messages.
class Flag : public cl::opt<std::string> {
public:
  Flag(const char *name, const char *value, const char *standard,
       const char *help, const std::string &saying = "")
      : opt(llvm::StringRef(name), cl::cat(category), cl::init(standard),
            cl::value_desc(value)),
        help(std::string(help) +
             " (default: " + (saying.empty() ? standard : saying) + ")") {
    setDescription(this->help);
    getAll().push_back(this);
  }

  /// In the order of the help.
  static std::vector<Flag *> &getAll() {
    static std::vector<Flag *> flags;
    return flags;
  }

private:
  std::string help;
};

} // namespace

static cl::list<std::string>
    layers("layers", cl::CommaSeparated, cl::cat(category),
           cl::value_desc("10,32,16,1"),
           cl::desc("Sizes from input to output; required"));
static Flag activation("activation", "relu|gelu|gelu_tanh|silu|tanh|sigmoid",
                       "relu", "After every layer but the last");
static cl::opt<bool> layerNorm("layer-norm", cl::cat(category),
                               cl::desc("A layer norm before each activation"));
static Flag residualBlocks("residual-blocks", "number", "0",
                           "Pre-LN residual blocks in front of the "
                           "last layer, and a layer norm");
static Flag dropout("dropout", "rate", "0", "Dropout after each activation");
static Flag loss("loss", "mse|softmax_cross_entropy", "mse", "Loss function");
static Flag optimizer("optimizer", "sgd|momentum|adam|adamw", "sgd",
                      "Optimizer");
static Flag learningRate("learning-rate", "rate", "0.01", "Learning rate");
static Flag
    schedule("schedule", "cosine,warmup_steps=10,decay_steps=100", "",
             "Learning-rate schedule: constant, linear_warmup or cosine, and "
             "its numbers",
             "none");
static Flag momentum("momentum", "factor", "0.9", "Of the momentum optimizer");
static Flag b1("b1", "rate", "0.9", "Of adam and adamw: decay of the mean");
static Flag b2("b2", "rate", "0.999",
               "Of adam and adamw: decay of the squares");
static Flag eps("eps", "number", "1e-8", "Of adam and adamw: in the divisor");
static Flag weightDecay("weight-decay", "factor", "0",
                        "Decoupled for adamw, else L2", "optax's");
static Flag clipNorm("clip-norm", "norm", "0",
                     "Largest global norm of the gradients", "none");
static Flag
    strategy("strategy",
             "none|dp|zero1|zero2|fsdp|tp|dp+tp|fsdp+tp|hsdp|hsdp+tp", "none",
             "Sharding strategy: the tensors sharded over each axis; pp, or "
             "+pp behind dp, tp, zero1, fsdp, dp+tp or fsdp+tp: a pipeline");
static Flag stages("stages", "number", "2",
                   "Of a pipeline: the size of its mesh axis",
                   "the mesh's, or 2");
static Flag pipelineSchedule("pipeline-schedule",
                             "gpipe|1f1b|interleaved|zero-bubble", "1f1b",
                             "Of a pipeline: the order of its tasks");
static Flag virtualStages("virtual-stages", "number", "1",
                          "Of a pipeline: stages of each rank, for "
                          "interleaved");
static Flag
    recompute("recompute", "none|layer|stage|auto", "none",
              "What the backward pass computes again; stage: of a pipeline");
static Flag fsdpMinSize("fsdp-min-size", "elements", "0",
                        "Smaller parameters stay replicated under fsdp");
static Flag mesh("mesh", "data=4,model=2", "", "Mesh axes and their sizes",
                 "8 devices");
static Flag batchSize("batch-size", "rows", "128", "Global batch size");
static Flag microbatches("microbatches", "number", "1",
                         "Number of microbatches of a step");
static cl::opt<std::string>
    output("o", cl::cat(category), cl::init("-"), cl::value_desc("file"),
           cl::desc("Output file (default: standard output)"));

static int fail(const std::string &message) {
  llvm::errs() << "shardc-gen: error: " << makePrintable(message) << '\n';
  return static_cast<int>(ExitCode::Usage);
}

int main(int argc, char **argv) {
  // A reader that goes away ends the tool as it ends others: SIGPIPE.
  llvm::InitLLVM initLLVM(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  ignoreSizeSignal();
  if (std::optional<int> code =
          readArguments(argc, argv,
                        {"shardc-gen", SHARDC_VERSION,
                         "Writes the model file of a multi-layer perceptron\n",
                         /*mostInputs=*/0, category}))
    return *code;

  MlpSpec spec;
  if (layers.empty())
    return fail("--layers: expected sizes such as --layers=10,32,16,1");
  std::string mistake = setMlpOption("layers", llvm::join(layers, ","), spec);
  spec.layerNorm = layerNorm;
  for (Flag *flag : Flag::getAll())
    if (mistake.empty() && flag->getNumOccurrences())
      mistake = setMlpOption(flag->ArgStr, flag->getValue(), spec);
  if (!mistake.empty())
    return fail("--" + mistake);
  if (std::string error = checkMlp(spec); !error.empty())
    return fail("--" + error);
  if (llvm::StringRef(spec.strategy).starts_with("zero1") &&
      spec.optimizer == "sgd")
    llvm::errs() << "shardc-gen: note: sgd has no states for zero1 to shard; "
                    "the model is that of dp\n";

  if (std::string error =
          checkOutputFiles(/*inputs=*/{}, {{"-o " + output, output}});
      !error.empty())
    return fail(error);
  if (std::string message = writeFile(output, printMlp(spec)); !message.empty())
    return fail(message);
  return static_cast<int>(ExitCode::Ok);
}
