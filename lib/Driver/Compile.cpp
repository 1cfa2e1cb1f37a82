//===- Compile.cpp - From a source file to a plan -------------------------===//

#include "shardc/Driver/Compile.h"

#include "shardc/WhatIf/CompareCheapest.h"
#include "shardc/WhatIf/CompareManual.h"
#include "shardc/WhatIf/CompareRegather.h"
#include "shardc/WhatIf/ExplainContracts.h"
#include "shardc/WhatIf/FixIts.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Driver/ReadModel.h"
#include "shardc/Pipelines/PhaseInput.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/Explain.h"
#include "shardc/Report/TimeEstimate.h"
#include "shardc/Support/CheckNesting.h"
#include "shardc/Support/InputBytes.h"
#include "shardc/Support/InputFiles.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/TargetSpec.h"
#include "shardc/Transforms/Import/OverrideMesh.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace shardc;

/// The module's mesh with every axis of size 1. Empty if it has none.
static std::string getSingleDeviceMesh(ModuleOp module) {
  MeshSpec mesh;
  for (auto op : module.getOps<MeshOp>())
    for (Attribute axis : op.getAxes())
      mesh.emplace_back(cast<MeshAxisAttr>(axis).getName().str(), 1);
  return toString(mesh);
}

/// The machine of `module`, which emits an error if it cannot be read.
static FailureOr<Machine> getMachine(ModuleOp module,
                                     const CompileOptions &options) {
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh))
    return failure();
  llvm::Expected<Machine> machine = loadMachineFor(*mesh, options.machine);
  if (!machine)
    return module.emitError() << llvm::toString(machine.takeError());
  return std::move(*machine);
}

/// Runs the phases up to `last`. For a plan it stops between phases to collect
/// more for the reports: fix-its, the cost of alternatives, the comparison with
/// the cheapest plan.
static LogicalResult runPhases(ModuleOp module, const CompileOptions &options,
                               int last, CompileState &state) {
  auto runWith = [&](int first, int last, const CompileOptions &options) {
    PassManager manager(module.getContext());
    // A phase ends with the verifier anyway; after every pass it takes longer
    // than most passes.
    manager.enableVerifier(options.verifyEach);
    noteMemoryErrors(manager, state);
    buildPhases(manager, first, last, options, state);
    return manager.run(module);
  };
  auto run = [&](int first, int last) { return runWith(first, last, options); };
  if (last + 1 < static_cast<int>(getPhases().size()))
    return run(0, last);
  int import = getPhaseIndex("import");
  int collectives = getPhaseIndex("collectives");
  SourceAnnotations source = getSourceAnnotations(module);
  if (failed(run(0, import)))
    return failure();
  OwningOpRef<ModuleOp> imported = module.clone();
  int propagate = getPhaseIndex("propagate");
  if (failed(run(import + 1, propagate - 1)))
    return failure();
  OwningOpRef<ModuleOp> differentiated, automatic;
  if (options.compareCheapest) {
    differentiated = module.clone();
    automatic = copyWithoutManual(module);
  }
  if (failed(run(propagate, propagate)))
    return failure();
  OwningOpRef<ModuleOp> propagated = module.clone();
  // Contracts on collectives are checked below, with fix-its.
  CompileOptions unchecked = options;
  unchecked.ignoreExpectations = true;
  if (failed(runWith(propagate + 1, collectives, unchecked)))
    return failure();
  if (!options.ignoreExpectations && !options.singleDevice &&
      failed(checkContracts(module, *imported, source, options)))
    return failure();
  compareRegather(module, *propagated, options);
  FailureOr<Machine> machine = getMachine(module, options);
  if (failed(machine))
    return failure();
  FailureOr<Explanation> explanation = explain(module, *machine);
  int memory = getPhaseIndex("memory");
  if (failed(explanation) || failed(run(collectives + 1, memory)))
    return failure();
  setPipelineCosts(*explanation, module, *machine);
  if (options.findFixIts)
    findFixIts(*imported, source, options, *machine, *explanation);
  llvm::raw_string_ostream os(state.explanation);
  writeJSON(*explanation, os);
  std::optional<CheapestComparison> comparison, manual;
  if (options.compareCheapest)
    comparison = compareCheapest(module, *differentiated, options);
  if (automatic)
    manual = compareManual(module, *automatic, options);
  if (failed(run(memory + 1, last)))
    return failure();
  if (comparison)
    remarkOn(*comparison, options);
  if (manual)
    remarkOnManual(*manual);
  return success();
}

/// Runs the phases from `first` to `last` on IR of the phase before `first`.
/// Its reports follow from the IR, without the costs of alternatives but for
/// that of a shard_map.
static LogicalResult resumePhases(ModuleOp module,
                                  const CompileOptions &options, int first,
                                  int last, CompileState &state) {
  auto run = [&](int first, int last) {
    PassManager manager(module.getContext());
    manager.enableVerifier(options.verifyEach);
    manager.addPass(createPhaseInputPass(first - 1));
    noteMemoryErrors(manager, state);
    buildPhases(manager, first, last, options, state);
    return manager.run(module);
  };
  int collectives = getPhaseIndex("collectives");
  if (first > collectives + 1 || last <= collectives)
    return run(first, last);
  OwningOpRef<ModuleOp> automatic;
  if (options.compareCheapest && first == getPhaseIndex("propagate"))
    automatic = copyWithoutManual(module);
  if (first <= collectives && failed(run(first, collectives)))
    return failure();
  FailureOr<Machine> machine = getMachine(module, options);
  if (failed(machine))
    return failure();
  FailureOr<Explanation> explanation = explain(module, *machine);
  if (failed(explanation))
    return failure();
  int memory = getPhaseIndex("memory");
  if (last <= memory)
    return run(collectives + 1, last);
  if (failed(run(collectives + 1, memory)))
    return failure();
  setPipelineCosts(*explanation, module, *machine);
  llvm::raw_string_ostream os(state.explanation);
  writeJSON(*explanation, os);
  std::optional<CheapestComparison> manual;
  if (automatic)
    manual = compareManual(module, *automatic, options);
  if (failed(run(memory + 1, last)))
    return failure();
  if (manual)
    remarkOnManual(*manual);
  return success();
}

/// The flag among `options` that describes what an imported train step has of
/// its own; "" if there is none.
static std::string findTrainingFlag(const CompileOptions &options) {
  const struct {
    const char *flag;
    bool isGiven;
  } flags[] = {{"--rules", !options.rules.empty()},
               {"--dtype", !options.dtype.empty()},
               {"--optimizer", !options.optimizer.empty()},
               {"--learning-rate", options.learningRate != 0},
               {"--schedule", !options.schedule.empty()},
               {"--clip-norm", options.clipNorm != 0},
               {"--batch-size", options.batchSize != 0},
               {"--microbatches", options.microbatches > 1},
               {"--stages", options.stages > 0},
               {"--recompute",
                !options.recompute.empty() && options.recompute != "none"}};
  for (const auto &each : flags)
    if (each.isGiven)
      return each.flag;
  return "";
}

/// Prepares an imported train step, which `differentiate` has no part in.
static LogicalResult prepareTrainStep(ModuleOp module,
                                      const CompileOptions &options) {
  if (std::string flag = findTrainingFlag(options); !flag.empty())
    return module.emitError()
           << flag << ": the program is a whole train step, which says this "
           << "itself; expected a loss function of shardc.jax.export_loss";
  return overrideMesh(module, options.mesh);
}

/// Runs phases from `first` to `last`; `output` receives the plan, or the text
/// of the IR.
static ExitCode compile(ModuleOp module, CompileOptions options, int first,
                        int last, std::string &output) {
  if (options.singleDevice) {
    options.mesh = getSingleDeviceMesh(module);
    options.microbatches = 1;
    options.stages = 0;
    options.pipelineSchedule = "";
    options.virtualStages = 0;
    options.recompute = "none";
    options.deviceMemory = 0;
  }
  int differentiate = getPhaseIndex("differentiate");
  if (first == 0 && module.lookupSymbol("train_step") &&
      findPhase(module) == ModulePhase::Differentiate) {
    if (last <= differentiate)
      return module.emitError("is a whole train step: expected a phase after "
                              "'differentiate'"),
             ExitCode::Usage;
    if (failed(prepareTrainStep(module, options)))
      return ExitCode::Usage;
    first = differentiate + 1;
  }
  CompileState state;
  state.getPeaks = getPeaksOnTrial;
  state.measurePlan = measureOnTrial;
  state.estimatePlan = estimateOnTrial;
  if (failed(first == 0 ? runPhases(module, options, last, state)
                        : resumePhases(module, options, first, last, state)))
    return getFailureCode(state);
  if (last + 1 == static_cast<int>(getPhases().size()))
    output = std::move(state.plan);
  else
    llvm::raw_string_ostream(output) << module << '\n';
  return ExitCode::Ok;
}

const char *shardc::toString(CompileMessage::Severity severity) {
  const char *const names[] = {"error", "warning", "remark", "note"};
  return names[static_cast<int>(severity)];
}

/// An error without a place.
static CompileResult fail(ExitCode code, const std::string &error) {
  CompileResult result;
  result.code = code;
  result.diagnostics = "error: " + error + "\n";
  result.messages.emplace_back().text = error;
  return result;
}

static CompileMessage toMessage(const Diagnostic &diagnostic) {
  using Severity = CompileMessage::Severity;
  CompileMessage message;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    message.severity = Severity::Error;
    break;
  case DiagnosticSeverity::Warning:
    message.severity = Severity::Warning;
    break;
  case DiagnosticSeverity::Remark:
    message.severity = Severity::Remark;
    break;
  case DiagnosticSeverity::Note:
    message.severity = Severity::Note;
    break;
  }
  if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
    message.file = place.getFilename().str();
    message.line = place.getLine();
    message.column = place.getColumn();
  }
  message.text = diagnostic.str();
  // The constant iterator of MLIR 19 gives no constant notes.
  for (Diagnostic &note : const_cast<Diagnostic &>(diagnostic).getNotes())
    message.notes.push_back(toMessage(note));
  return message;
}

static CompileResult compileBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                   const CompileOptions &options, int first,
                                   int last) {
  if (std::string error = checkOptions(options); !error.empty())
    return fail(ExitCode::Usage, error);
  llvm::StringRef text = buffer->getBuffer();
  std::string name = buffer->getBufferIdentifier().str();
  if (std::string error = checkIsSource(text); !error.empty())
    return fail(ExitCode::InvalidInput, name + ": " + error);
  CompileResult result;
  if (std::optional<DeepNesting> nesting = findDeepNesting(text)) {
    result.code = ExitCode::InvalidInput;
    result.diagnostics = checkNesting(text, name);
    result.messages.push_back({CompileMessage::Severity::Error, name,
                               nesting->line, nesting->column,
                               nesting->message});
    return result;
  }
  llvm::raw_string_ostream os(result.diagnostics);
  DialectRegistry registry;
  registerShardcDialects(registry);
  // One thread: modules are small, and starting a pool takes longer.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context, os);
  // Asked first; what fails to handle a diagnostic leaves it to the other one.
  ScopedDiagnosticHandler collector(&context, [&](Diagnostic &diagnostic) {
    result.messages.push_back(toMessage(diagnostic));
    return failure();
  });
  OwningOpRef<ModuleOp> module = parseModel(sources, context);
  result.code = module ? compile(*module, options, first, last, result.plan)
                       : ExitCode::InvalidInput;
  return result;
}

std::string shardc::checkOutputs(std::vector<NamedFile> inputs,
                                 std::vector<NamedFile> outputs,
                                 const CompileOptions &options) {
  bool isBuiltIn = llvm::any_of(getBuiltInMachines(), [&](const Machine &each) {
    return each.name == options.machine;
  });
  if (!isBuiltIn)
    inputs.push_back({"--machine", options.machine});
  if (isScheduleFile(options.pipelineSchedule))
    inputs.push_back({"--pipeline-schedule", options.pipelineSchedule});
  for (size_t index = 0; index < getPhases().size(); ++index)
    if (!options.dumpDir.empty()) {
      std::string path = getDumpPath(options.dumpDir, index);
      outputs.push_back({path + " of --shardc-dump-dir", path});
    }
  return checkOutputFiles(inputs, outputs);
}

static CompileResult compilePath(const std::string &path,
                                 const CompileOptions &options, int first,
                                 int last) {
  if (std::string error = checkOutputs({{"the model", path}}, {}, options);
      !error.empty())
    return fail(ExitCode::Usage, error);
  auto buffer = readModelFile(path);
  if (!buffer)
    return fail(ExitCode::InvalidInput, llvm::toString(buffer.takeError()));
  return compileBuffer(std::move(*buffer), options, first, last);
}

CompileResult shardc::compileFile(const std::string &path,
                                  const CompileOptions &options) {
  return compilePath(path, options, 0, getPhases().size() - 1);
}

CompileResult shardc::compileSource(const std::string &source,
                                    const std::string &name,
                                    const CompileOptions &options) {
  return compileBuffer(llvm::MemoryBuffer::getMemBufferCopy(source, name),
                       options, 0, getPhases().size() - 1);
}

/// The index of the phase `name`; -1 with an `error` that names the nearest.
static int readPhase(const std::string &name, std::string &error) {
  int index = getPhaseIndex(name);
  if (index < 0)
    error = "unknown phase '" + name + "'" + suggest(name, getPhaseNames());
  return index;
}

/// Runs the phases from `first`; `error` is an error in the choice of phases.
static CompileResult compileTo(const std::string &path, int first,
                               const std::string &to, std::string error,
                               const CompileOptions &options) {
  int last = error.empty() ? readPhase(to, error) : -1;
  if (error.empty() && first > last)
    error = "the phase '" + getPhases()[first - 1].name.str() +
            "' of the input does not come before '" + to + "'";
  if (error.empty())
    error = checkPhases(first, last, options);
  if (error.empty())
    return compilePath(path, options, first, last);
  return fail(ExitCode::Usage, error);
}

CompileResult shardc::compileFileTo(const std::string &path,
                                    const std::string &phase,
                                    const CompileOptions &options) {
  return compileTo(path, 0, phase, "", options);
}

CompileResult shardc::compileFileFromTo(const std::string &path,
                                        const std::string &from,
                                        const std::string &to,
                                        const CompileOptions &options) {
  std::string error;
  int first = readPhase(from, error) + 1;
  return compileTo(path, first, to, error, options);
}
