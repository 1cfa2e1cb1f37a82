//===- Phases.cpp - The phases of the compiler ----------------------------===//
//
// The table of phases, and the passes of each phase with the reason for each.
//
//===----------------------------------------------------------------------===//

#include "shardc/Pipelines/Phases.h"

#include "PhaseContracts.h"
#include "PhaseEnd.h"
#include "VerifyPartition.h"
#include "WritePlanPass.h"

#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Conversion/KernelsToGPU/EmulateGrid.h"
#include "shardc/Conversion/KernelsToGPU/LowerKernelsToGpu.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Pipelines/OptionTable.h"
#include "shardc/Support/TargetSpec.h"
#include "shardc/Target/CUDA/EmitPtx.h"
#include "shardc/Transforms/Kernels/RecomputeLimit.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace shardc;

/// Contracts apply to the requested program. The one-device program that a run
/// is compared with may break them.
static void checkExpectations(OpPassManager &manager,
                              const CompileOptions &options, StringRef after) {
  if (options.ignoreExpectations || options.singleDevice)
    return;
  CheckExpectationsPassOptions check;
  check.after = after.str();
  manager.addPass(createCheckExpectationsPass(check));
}

/// Measures modules after phase `phase`; null if nobody does that here.
static PlanMeasurer getMeasurer(StringRef phase, const CompileOptions &options,
                                CompileState &state) {
  if (!state.measurePlan)
    return {};
  return [phase, options, &state](ModuleOp module) {
    return state.measurePlan(module, phase, options);
  };
}

static void buildImport(OpPassManager &manager, const CompileOptions &options,
                        CompileState &state) {
  ImportPassOptions import;
  import.mesh = options.mesh;
  import.rules = options.rules;
  import.batch = options.batchSize;
  import.microbatches = options.microbatches;
  import.dtype = options.dtype;
  import.optimizer = options.optimizer;
  import.learningRate = options.learningRate;
  import.schedule = options.schedule;
  import.clipNorm = options.clipNorm;
  import.stages = options.stages;
  import.pipelineSchedule = options.pipelineSchedule;
  import.virtualStages = options.virtualStages;
  import.recompute = options.recompute;
  manager.addPass(createImportPass(import));
  // On the loss function: what is built from an op belongs to its stage.
  AssignStagesPassOptions stages;
  stages.machine = options.machine;
  manager.addPass(createAssignStagesPass(
      stages, {options.deviceMemory, getMeasurer("import", options, state)},
      state.stageCuts));
}

static void buildDifferentiate(OpPassManager &manager, const CompileOptions &,
                               CompileState &) {
  // Decomposes the composites itself: the evaluation program depends on the
  // kind of the loss. It also cleans up after itself, since merging the
  // constants that it leaves separate would tie shardings of unrelated values
  // together.
  manager.addPass(createDifferentiatePass());
  // After differentiation, when the loop can be cut out of the whole step: no
  // gradient of a loop is needed.
  manager.addPass(createSplitMicrobatchesPass());
  // Behind the loop, since a value that no microbatch changes crosses once.
  manager.addPass(createInsertTransfersPass());
}

static void buildPropagate(OpPassManager &manager,
                           const CompileOptions &options, CompileState &state) {
  PropagatePassOptions propagate;
  propagate.partition = options.partition;
  propagate.objective = options.objective;
  propagate.machine = options.machine;
  propagate.regather = options.regather;
  propagate.gap = options.gap;
  propagate.maxStrategies = options.maxStrategies;
  propagate.maxBranchOptions = options.maxBranchOptions;
  PlanEstimator estimator;
  if (state.estimatePlan)
    estimator = [options, &state](ModuleOp module) {
      return state.estimatePlan(module, options);
    };
  manager.addPass(
      createPropagatePass(propagate,
                          {options.deviceMemory,
                           [options, &state](ModuleOp module, bool again) {
                             CompileOptions trial = options;
                             trial.regather = again;
                             return state.getPeaks(module, trial);
                           }},
                          estimator));
  checkExpectations(manager, options, "propagate");
}

static void buildPartition(OpPassManager &manager,
                           const CompileOptions &options, CompileState &) {
  // Before `partition`: the causes and costs of moves are found on the global
  // program.
  InsertReshardsPassOptions reshard;
  reshard.regather = options.regather;
  manager.addPass(createInsertReshardsPass(reshard));
  manager.addPass(createPartitionPass());
  // Before buckets, which hold collectives of one stage.
  manager.addPass(createCompleteStagesPass());
}

static void buildCollectives(OpPassManager &manager,
                             const CompileOptions &options, CompileState &) {
  // Before merging, since buckets are not simplified any more.
  manager.addPass(createSimplifyCollectivesPass());
  CombineCollectivesPassOptions combine;
  combine.bucketBytes = options.bucketBytes;
  manager.addPass(createCombineCollectivesPass(combine));
  checkExpectations(manager, options, "collectives");
}

static TargetSpec getTarget(const CompileOptions &options) {
  std::string error;
  return parseTargetSpec(options.target, error).value_or(TargetSpec());
}

static void buildKernels(OpPassManager &manager, const CompileOptions &options,
                         CompileState &state) {
  // First, when communication is decided: repeated ops belong to tasks and get
  // kernels as all others do.
  RecomputePassOptions recompute;
  recompute.machine = options.machine;
  RecomputeLimit limit{options.deviceMemory, state.isTrial,
                       getMeasurer("collectives", options, state)};
  manager.addPass(createRecomputePass(recompute, limit));
  // Then tasks: ops of different ones never become one.
  manager.addPass(createMarkTasksPass());
  // Before fusion, which puts the rounding into the kernels of the update.
  manager.addPass(createRoundInUpdatePass());
  // Before fusion, which computes the summands of a row where they are reduced.
  bool isGpu = getTarget(options).kind != TargetSpec::Kind::CPU;
  if (isGpu)
    manager.addPass(createSplitReductionsPass());
  // Before fusion, which puts additions where their summands are computed.
  manager.addPass(createExpandAccumulationsPass());
  // Library GEMMs come first: fusion takes the ops that they leave.
  FormGemmsPassOptions form;
  form.isForCPU = !isGpu;
  manager.addPass(createFormGemmsPass(form));
  FuseKernelsPassOptions fuse;
  fuse.fewLaunches = isGpu;
  manager.addPass(createFuseKernelsPass(fuse));
  // After fusion, whose kernels it cuts in two.
  if (!isGpu)
    manager.addPass(createSplitSumsPass());
}

static void buildSchedule(OpPassManager &manager, const CompileOptions &options,
                          CompileState &) {
  // First the order that needs the least memory: its peak bounds the overlap.
  manager.addPass(createSchedulePass());
  // With the order of the ops in a task, the order of tasks.
  SchedulePipelinePassOptions pipeline;
  pipeline.machine = options.machine;
  manager.addPass(createSchedulePipelinePass(pipeline));
  manager.addPass(createOverlapCollectivesPass());
}

static void buildMemory(OpPassManager &manager, const CompileOptions &options,
                        CompileState &) {
  PlanMemoryPassOptions plan;
  plan.memoryLimit = options.deviceMemory;
  manager.addPass(createPlanMemoryPass(plan));
  checkExpectations(manager, options, "memory");
}

static void buildCodegen(OpPassManager &manager, const CompileOptions &options,
                         CompileState &) {
  TargetSpec target = getTarget(options);
  switch (target.kind) {
  case TargetSpec::Kind::CPU:
    return manager.addPass(createLowerKernelsPass());
  case TargetSpec::Kind::EmulatedGPU:
    return manager.addPass(createEmulateGridPass());
  case TargetSpec::Kind::CUDA:
    manager.addPass(createLowerKernelsToGpuPass(target.chip));
    manager.addNestedPass<gpu::GPUModuleOp>(createConvertToNVVMPass());
  }
}

static void buildPlan(OpPassManager &manager, const CompileOptions &options,
                      CompileState &state) {
  manager.addPass(createWritePlanPass(options, state));
}

static constexpr Phase phases[] = {
    {"import", "one verified module; logical axes resolved to mesh axes",
     buildImport, verifyImported},
    {"differentiate",
     "@train_step (forward, backward, update), @evaluate and @predict over the "
     "core",
     buildDifferentiate, verifyDifferentiated},
    {"propagate", "every op has a strategy, every argument a sharding",
     buildPropagate, verifyPropagated},
    {"partition", "local tensors, explicit collectives, padding masked",
     buildPartition, verifyPartitioned},
    {"collectives", "no collective twice; those of a kind and axes in buckets",
     buildCollectives, verifyPartitioned},
    {"kernels", "compute is in fused kernels and library GEMMs", buildKernels,
     verifyOutlined},
    {"schedule",
     "the order of execution; collectives are started and waited for",
     buildSchedule, verifyScheduled},
    {"memory", "every buffer has its place in the arena", buildMemory,
     verifyPlanned},
    {"codegen", "every kernel is a function of the LLVM dialect in @kernels",
     buildCodegen, verifyPlanned},
    {"plan", "the executable plan file", buildPlan, verifyPlanned},
};

ArrayRef<Phase> shardc::getPhases() { return phases; }

int shardc::getPhaseIndex(StringRef name) {
  for (auto [index, phase] : llvm::enumerate(getPhases()))
    if (phase.name == name)
      return index;
  return -1;
}

std::vector<std::string> shardc::getPhaseNames() {
  std::vector<std::string> names;
  for (const Phase &phase : getPhases())
    names.push_back(phase.name.str());
  return names;
}

std::string shardc::checkPhases(int first, int last,
                                const CompileOptions &options) {
  int partition = getPhaseIndex("partition");
  if (options.verifyPartition && (partition < first || partition > last))
    return "--verify-partition: the phase 'partition' does not run";
  for (const CompileOption &option : getCompileOptions())
    if (getPhaseIndex(option.lastPhase) < first &&
        getValue(option, options) != getValue(option, CompileOptions()))
      return "--" + std::string(option.name) +
             " changes nothing after the phase '" + option.lastPhase +
             "', and the input is IR of '" + getPhases()[first - 1].name.str() +
             "' (--compile-from)";
  return "";
}

std::string shardc::getDumpPath(StringRef dumpDir, int index) {
  std::string number = std::to_string(index + 1);
  SmallString<128> path(dumpDir);
  llvm::sys::path::append(path, std::string(number.size() < 2, '0') + number +
                                    "-" + getPhases()[index].name + ".mlir");
  return path.str().str();
}

void shardc::buildPhases(OpPassManager &manager, int first, int last,
                         const CompileOptions &options, CompileState &state) {
  for (int index = first; index <= last; ++index) {
    if (options.verifyPartition && getPhases()[index].name == "partition")
      manager.addPass(createVerifyPartitionPass(options, index, last, state));
    getPhases()[index].build(manager, options, state);
    if (!state.isTrial || options.verifyEach)
      manager.addPass(createPhaseEndPass(index, options.dumpDir, state));
  }
}

namespace {
/// Looks for the mark of `emitMemoryError`.
struct MemoryErrors : PassInstrumentation {
  explicit MemoryErrors(CompileState &state) : state(state) {}

  void runAfterPassFailed(Pass *, Operation *op) override {
    state.exceedsMemory |= op->hasAttr(exceedsMemoryAttrName);
  }

  CompileState &state;
};
} // namespace

void shardc::noteMemoryErrors(PassManager &manager, CompileState &state) {
  manager.addInstrumentation(std::make_unique<MemoryErrors>(state));
}

void shardc::registerShardcDialects(DialectRegistry &registry) {
  registry.insert<ShardcDialect, func::FuncDialect>();
  // The functions of kernels, after `codegen`.
  registry.insert<LLVM::LLVMDialect, gpu::GPUDialect, NVVM::NVVMDialect>();
}

void shardc::registerAllShardcPasses() {
  registerShardcPasses();
  registerShardcConversionPasses();
  registerShardcGpuConversionPasses();
  registerShardcCudaPasses();
  registerCSEPass();
  registerCanonicalizerPass();
}
