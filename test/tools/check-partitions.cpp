//===- check-partitions.cpp - Random programs and --verify-partition ------===//
//
// Makes random programs, compiles each up to the phase `collectives` and has
// the partition verified. A failing one is printed with the commands that
// repeat it.
//
//===----------------------------------------------------------------------===//

#include "RandomProgram.h"

#include "shardc/Pipelines/CommandLine.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;
namespace cl = llvm::cl;

static cl::OptionCategory category("check-partitions options");
static cl::opt<uint64_t> firstSeed("seed", cl::cat(category), cl::init(0),
                                   cl::desc("Of the first program"));
static cl::opt<uint64_t> count("count", cl::cat(category), cl::init(100),
                               cl::desc("How many programs, one per seed"));
static cl::opt<bool> onlyPrint("print", cl::cat(category),
                               cl::desc("Print the programs, check nothing"));

/// Compiles `text`; returns whether its partition was verified and leaves what
/// the compiler said in `output`.
static bool checkProgram(const std::string &text, const CompileOptions &options,
                         MLIRContext &context, std::string &output) {
  llvm::raw_string_ostream os(output);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, "program.mlir"), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context, os);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return false;
  CompileState state;
  PassManager manager(&context);
  buildPhases(manager, 0, getPhaseIndex("collectives"), options, state);
  return succeeded(manager.run(*module)) &&
         llvm::StringRef(output).contains("partition verified");
}

int main(int argc, char **argv) {
  llvm::InitLLVM initLLVM(argc, argv);
  CompileOptionsFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Verifies the partitions of random programs\n");
  CompileOptions options = flags.get();
  options.verifyPartition = true;

  DialectRegistry registry;
  registerShardcDialects(registry);
  uint64_t failures = 0;
  for (uint64_t seed = firstSeed; seed < firstSeed + count; ++seed) {
    std::string text = test::makeRandomProgram(seed), output;
    if (onlyPrint) {
      llvm::outs() << text;
      continue;
    }
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.printOpOnDiagnostic(false);
    if (checkProgram(text, options, context, output))
      continue;
    ++failures;
    llvm::outs() << "FAILED seed " << seed << "\n"
                 << output << text << "repeat with:";
    for (int i = 0; i < argc; ++i)
      llvm::outs() << ' ' << argv[i];
    llvm::outs() << " --seed=" << seed << " --count=1\n"
                 << "or check-partitions --print --seed=" << seed
                 << " --count=1 | shardc-opt --compile-to=collectives "
                    "--verify-partition\n\n";
  }
  if (!onlyPrint)
    llvm::outs() << count - failures << " of " << count
                 << " random programs compute what they do unpartitioned\n";
  return failures == 0 ? 0 : 3;
}
