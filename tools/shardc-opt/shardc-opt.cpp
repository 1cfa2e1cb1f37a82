//===- shardc-opt.cpp - Passes and phases on textual IR -------------------===//
//
// The tool of MLIR's users for the dialects and passes of shardc, with the
// phases of the compiler as --compile-to and --compile-from.
//
//===----------------------------------------------------------------------===//

#include "MlirFlags.h"

#include "shardc/Driver/CommandLine.h"
#include "shardc/Driver/DebugOnly.h"
#include "shardc/Import/ImportStableHLO.h"
#include "shardc/Pipelines/PhaseInput.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Support/Arguments.h"
#include "shardc/Support/CheckNesting.h"
#include "shardc/Support/InputBytes.h"
#include "shardc/Support/InputFiles.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/WriteErrors.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace shardc;

static llvm::cl::OptionCategory category("shardc options");

static llvm::cl::opt<std::string>
    compileTo("compile-to", llvm::cl::cat(category),
              llvm::cl::value_desc("phase"),
              llvm::cl::desc("Run the phases up to and including this one"));
static llvm::cl::opt<std::string> compileFrom(
    "compile-from", llvm::cl::cat(category), llvm::cl::value_desc("phase"),
    llvm::cl::desc("The input is the output of --compile-to=PHASE"));

static llvm::cl::opt<std::string> inputFile(llvm::cl::Positional,
                                            llvm::cl::cat(category),
                                            llvm::cl::init("-"),
                                            llvm::cl::desc("<input file>"));
static llvm::cl::opt<std::string>
    outputFile("o", llvm::cl::cat(category), llvm::cl::init("-"),
               llvm::cl::value_desc("file"),
               llvm::cl::desc("Output file (default: standard output)"));

static int fail(ExitCode code, const llvm::Twine &message) {
  llvm::errs() << "shardc-opt: error: " << makePrintable(message.str()) << '\n';
  return static_cast<int>(code);
}

/// Reads a phase's name; -1 if `name` is empty, -2 with a message if unknown.
static int readPhase(llvm::StringRef flag, const std::string &name) {
  if (name.empty())
    return -1;
  int index = getPhaseIndex(name);
  if (index >= 0)
    return index;
  fail(ExitCode::Usage, "--" + flag + ": unknown phase '" + name + "'" +
                            suggest(name, getPhaseNames()));
  return -2;
}

int main(int argc, char **argv) {
  // A reader that goes away ends the tool as it ends others: SIGPIPE.
  llvm::InitLLVM initLLVM(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  ignoreSizeSignal();
  // MlirFlags has one of this name, which is on.
  CompileOptionsFlags flags(category, {"verify-each"});
  registerDebugOnlyFlag(category);
  DialectRegistry registry;
  registerShardcDialects(registry);
  registerAllShardcPasses();
  MlirFlags mlirFlags(category);
  if (std::optional<int> code =
          readArguments(argc, argv,
                        {"shardc-opt", SHARDC_VERSION,
                         "shardc's passes and phases on textual IR\n",
                         /*mostInputs=*/1, category,
                         [&](llvm::StringRef flag, llvm::StringRef value) {
                           return mlirFlags.checkValue(flag, value);
                         }}))
    return *code;

  std::string error = flags.check();
  if (error.empty())
    error = mlirFlags.check();
  if (!error.empty())
    return fail(ExitCode::Usage, error);
  int from = readPhase("compile-from", compileFrom);
  int to = readPhase("compile-to", compileTo);
  if (from == -2 || to == -2)
    return static_cast<int>(ExitCode::Usage);
  if (from >= 0 && to < 0)
    return fail(ExitCode::Usage, "--compile-from needs --compile-to");
  if (to >= 0 && from > to)
    return fail(ExitCode::Usage, "--compile-from=" + compileFrom +
                                     " comes after --compile-to=" + compileTo);
  if (to == getPhaseIndex("plan"))
    return fail(ExitCode::Usage,
                "--compile-to=plan: a plan is no IR; expected a phase up to "
                "'codegen', or shardc-compile MODEL -o FILE.shardc");
  CompileOptions options = flags.get();
  error = checkPhases(from + 1, to, options);
  if (error.empty())
    error = checkOutputs({{"the input", inputFile}},
                         {{"-o " + outputFile, outputFile}}, options);
  if (!error.empty())
    return fail(ExitCode::Usage, error);

  MlirOptMainConfig config = mlirFlags.getConfig();
  CompileState state;
  state.getPeaks = getPeaksOnTrial;
  state.measurePlan = measureOnTrial;
  state.estimatePlan = estimateOnTrial;
  config.setPassPipelineSetupFn([&](PassManager &manager) {
    noteMemoryErrors(manager, state);
    if (from >= 0)
      manager.addPass(createPhaseInputPass(from));
    if (to >= 0)
      buildPhases(manager, from + 1, to, options, state);
    return mlirFlags.addPasses(manager);
  });

  error = checkInputEnds(inputFile);
  std::unique_ptr<llvm::MemoryBuffer> input =
      error.empty() ? openInputFile(inputFile, &error) : nullptr;
  if (!input)
    return fail(ExitCode::InvalidInput, error);
  if (error = checkIsSource(input->getBuffer()); !error.empty())
    return fail(ExitCode::InvalidInput, inputFile + ": " + error);
  if (error = checkNesting(input->getBuffer(), inputFile); !error.empty()) {
    llvm::errs() << error;
    return static_cast<int>(ExitCode::InvalidInput);
  }
  if (hasStableHLO(input->getBuffer())) {
    std::optional<std::string> imported =
        importStableHLOText(input->getBuffer(), inputFile, llvm::errs());
    if (!imported)
      return static_cast<int>(ExitCode::InvalidInput);
    input = llvm::MemoryBuffer::getMemBufferCopy(*imported, inputFile);
  }
  std::unique_ptr<llvm::ToolOutputFile> output =
      openOutputFile(outputFile, &error);
  if (!output)
    return fail(ExitCode::Usage, error);
  LogicalResult result =
      MlirOptMain(output->os(), std::move(input), registry, config);
  error = finishOutput(output->os(), outputFile);
  if (error.empty())
    error = finishOutput(llvm::outs(), "-");
  if (!error.empty())
    return fail(ExitCode::Usage, error);
  if (failed(result))
    return static_cast<int>(getFailureCode(state));
  output->keep();
  return 0;
}
