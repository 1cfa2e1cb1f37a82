//===- BuildPlan.cpp - The executable plan of a module --------------------===//

#include "shardc/Target/Plan/BuildPlan.h"

#include "PlanTables.h"
#include "PlanText.h"

#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Conversion/KernelsToGPU/LowerKernelsToGpu.h"
#include "shardc/CostModel/WireBytes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Report/MemoryReport.h"
#include "shardc/Report/TimeEstimate.h"
#include "shardc/Target/CPU/CompileKernels.h"
#include "shardc/Target/CUDA/AssemblePtx.h"
#include "shardc/Target/CUDA/EmitPtx.h"

#include "shardc-rt/PlanFormat.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace shardc {

static_assert(int(fb::CollectiveKind::CollectivePermute) ==
                  int(CollectiveKind::CollectivePermute),
              "the schema and the compiler number collectives alike");
static_assert(int(fb::MemoryKind::Workspace) == int(MemoryKind::Workspace),
              "the schema and the compiler number kinds of memory alike");
static_assert(std::string_view(kRoundParametersName) == rt::roundingProgram,
              "functions of the IR are named as the programs of the plan");

static bool hasStep(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(), [](auto function) {
    return getProgramName(function) == "train_step";
  });
}

/// Checks the preconditions of the tables.
static llvm::Error checkModule(ModuleOp module) {
  if (module.getOps<MeshOp>().empty())
    return llvm::createStringError("expected a shardc.mesh in the module");
  if (!module->hasAttr(arenaBytesAttrName))
    return llvm::createStringError(
        "the module has no memory plan: run the phases up to codegen first");
  if (!hasStep(module))
    return llvm::createStringError("the module has no function @train_step");
  std::string problem;
  for (auto function : module.getOps<func::FuncOp>())
    for (Block *block : getBlocks(function))
      for (Operation &op : *block) {
        bool isKnown = isa<KernelOp, GemmOp, AccumulateOp, CollectiveStartOp,
                           CollectiveWaitOp, RowsOp, ZerosOp>(op) ||
                       op.hasTrait<OpTrait::IsTerminator>();
        if (!isKnown || (isa<KernelOp>(op) && !op.hasAttr(symbolAttrName)))
          problem = op.getName().getStringRef().str();
      }
  if (!problem.empty())
    return llvm::createStringError(
        "'" + problem +
        "' in the program has no command: run the phases up to codegen first");
  return llvm::Error::success();
}

static flatbuffers::Offset<fb::Mesh> writeMesh(PlanContext &plan) {
  std::vector<flatbuffers::Offset<fb::Axis>> axes;
  for (Attribute attr : plan.mesh.getAxes()) {
    auto axis = cast<MeshAxisAttr>(attr);
    axes.push_back(fb::CreateAxisDirect(
        plan.builder, axis.getName().str().c_str(), axis.getSize()));
  }
  return fb::CreateMeshDirect(plan.builder,
                              plan.mesh.getSymName().str().c_str(), &axes);
}

flatbuffers::Offset<fb::MemoryReport>
writeMemoryReport(PlanContext &plan, const MemoryReport &report) {
  std::vector<flatbuffers::Offset<fb::MemoryEntry>> entries;
  for (size_t kind = 0; kind < numMemoryKinds; ++kind)
    entries.push_back(fb::CreateMemoryEntry(plan.builder, fb::MemoryKind(kind),
                                            report.getBytes(MemoryKind(kind))));
  std::vector<flatbuffers::Offset<fb::LargestBuffer>> largest;
  for (const MemoryBuffer &buffer : report.getLargest())
    largest.push_back(fb::CreateLargestBufferDirect(
        plan.builder, buffer.name.c_str(), buffer.bytes,
        fb::MemoryKind(buffer.kind), buffer.source.c_str()));
  std::vector<flatbuffers::Offset<fb::Bucket>> buckets;
  for (const MemoryBucket &bucket : report.getBuckets())
    buckets.push_back(fb::CreateBucket(plan.builder, bucket.collective,
                                       bucket.tensors, bucket.operandRegions,
                                       bucket.resultRegions));
  std::vector<flatbuffers::Offset<fb::BufferLifetime>> lifetimes;
  for (const MemoryLifetime &lifetime : report.getLifetimes()) {
    // Layers have buffers of the same name, and several of one place.
    auto name = plan.builder.CreateSharedString(lifetime.buffer.name);
    auto source = plan.builder.CreateSharedString(lifetime.buffer.source);
    lifetimes.push_back(
        fb::CreateBufferLifetime(plan.builder, name, lifetime.buffer.bytes,
                                 fb::MemoryKind(lifetime.buffer.kind), source,
                                 lifetime.firstStep, lifetime.lastStep));
  }
  return fb::CreateMemoryReportDirect(
      plan.builder, &entries, &largest, &buckets, &lifetimes,
      report.getNumSteps(), report.getPeakStep());
}

/// The global leading dimension of the first input or label of the train step.
/// That of the inputs and labels with the most rows: those with fewer, such as
/// the key of random numbers, are no rows of a batch.
static int64_t getBatchSize(ModuleOp module) {
  int64_t size = 0;
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      Attribute role = function.getArgAttr(i, roleAttrName);
      auto shape =
          function.getArgAttrOfType<DenseI64ArrayAttr>(i, globalShapeAttrName);
      if (getProgramName(function) != "train_step" ||
          !isa_and_nonnull<InputAttr, LabelAttr>(role) || !shape ||
          shape.empty())
        continue;
      auto rows =
          function.getArgAttrOfType<IntegerAttr>(i, unpaddedRowsAttrName);
      size = std::max(size, rows ? rows.getInt() : shape[0]);
    }
  return size;
}

namespace {

/// The machine code of the kernels.
struct KernelCode {
  /// The GPU that it is for, such as "sm_90"; empty: CPUs.
  std::string gpuTarget;
  /// For a GPU the PTX, otherwise a shared object for each CPU target.
  std::vector<std::string> versions;
  /// The machine code of the PTX; may be empty.
  std::string cubin;
};

} // namespace

static llvm::Expected<KernelCode> compileCode(ModuleOp module,
                                              const PlanOptions &options) {
  KernelCode code;
  auto grids = module.lookupSymbol<gpu::GPUModuleOp>(kernelModuleName);
  if (!grids) {
    for (const CpuTarget *target : options.cpuTargets) {
      llvm::Expected<std::string> version = compileKernels(module, *target);
      if (!version)
        return version.takeError();
      code.versions.push_back(std::move(*version));
    }
    return code;
  }
  llvm::Expected<std::string> ptx = emitPtx(module);
  if (!ptx)
    return ptx.takeError();
  code.gpuTarget =
      grids->getAttrOfType<StringAttr>(chipAttrName).getValue().str();
  if (!options.ptxas.empty()) {
    llvm::Expected<std::string> cubin =
        assemblePtx(*ptx, code.gpuTarget, options.ptxas);
    if (cubin)
      code.cubin = std::move(*cubin);
    else if (options.needsCubin)
      return cubin.takeError();
    else
      module.emitWarning() << llvm::toString(cubin.takeError())
                           << "\nthe plan has PTX alone";
  }
  code.versions.push_back(std::move(*ptx));
  return code;
}

static flatbuffers::Offset<flatbuffers::Vector<uint8_t>>
writeBytes(flatbuffers::FlatBufferBuilder &builder, StringRef bytes) {
  return builder.CreateVector(reinterpret_cast<const uint8_t *>(bytes.data()),
                              bytes.size());
}

static std::vector<flatbuffers::Offset<flatbuffers::String>>
writeFeatures(flatbuffers::FlatBufferBuilder &builder,
              const CpuTarget &target) {
  std::vector<flatbuffers::Offset<flatbuffers::String>> features;
  for (StringRef feature : target.features)
    features.push_back(builder.CreateString(feature.str()));
  return features;
}

static flatbuffers::Offset<fb::CpuCode>
writeCpuCode(flatbuffers::FlatBufferBuilder &builder, const CpuTarget &target,
             StringRef code) {
  auto features = writeFeatures(builder, target);
  auto bytes = writeBytes(builder, code);
  auto name = builder.CreateString(target.name.str());
  return fb::CreateCpuCode(builder, name, builder.CreateVector(features),
                           bytes);
}

static llvm::Expected<std::string> buildPlan(ModuleOp module,
                                             const PlanOptions &options,
                                             const KernelCode &kernelCode) {
  if (llvm::Error error = checkModule(module))
    return error;
  flatbuffers::FlatBufferBuilder builder;
  MeshOp meshOp = *module.getOps<MeshOp>().begin();
  llvm::Expected<Machine> machine = loadMachineFor(meshOp, options.machine);
  if (!machine)
    return machine.takeError();
  remarkUnknownAxes(*machine, meshOp);
  bool hasStreams = !kernelCode.gpuTarget.empty();
  auto precision = llvm::StringSwitch<fb::Precision>(options.matmulPrecision)
                       .Case("tf32", fb::Precision::TF32)
                       .Case("bf16", fb::Precision::BF16)
                       .Default(fb::Precision::Highest);
  PlanContext plan{builder,   meshOp, std::move(*machine), {}, hasStreams,
                   precision, {}};
  std::string model = options.model;
  if (model.empty())
    model = module.getSymName().value_or("model").str();
  auto tensors = writeTensors(plan, module);
  std::vector<flatbuffers::Offset<fb::Program>> programs;
  for (auto function : module.getOps<func::FuncOp>())
    programs.push_back(writeProgram(plan, function));
  std::vector<flatbuffers::Offset<flatbuffers::String>> kernels, features;
  for (auto &[symbol, number] : plan.kernels)
    kernels.push_back(builder.CreateString(symbol.getValue().str()));
  flatbuffers::Offset<flatbuffers::String> cpuTarget, gpuTarget;
  if (!hasStreams) {
    cpuTarget = builder.CreateString(options.cpuTargets[0]->name.str());
    features = writeFeatures(builder, *options.cpuTargets[0]);
  } else {
    gpuTarget = builder.CreateString(kernelCode.gpuTarget);
  }
  auto mesh = writeMesh(plan);
  // With a pipeline each rank has its own.
  auto pipeline = writePipeline(plan, module);
  flatbuffers::Offset<fb::MemoryReport> memory;
  if (pipeline.IsNull())
    memory = writeMemoryReport(plan, MemoryReport(module));
  auto modelOffset = builder.CreateString(model);
  auto producer = builder.CreateString(options.producer);
  auto featuresOffset = builder.CreateVector(features);
  auto tensorsOffset = builder.CreateVector(tensors);
  auto programsOffset = builder.CreateVector(programs);
  auto kernelsOffset = builder.CreateVector(kernels);
  auto code = writeBytes(builder, kernelCode.versions[0]);
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> cubin;
  if (!kernelCode.cubin.empty())
    cubin = writeBytes(builder, kernelCode.cubin);
  std::vector<flatbuffers::Offset<fb::CpuCode>> cpuCodes;
  for (size_t i = 1; i < kernelCode.versions.size(); ++i)
    cpuCodes.push_back(
        writeCpuCode(builder, *options.cpuTargets[i], kernelCode.versions[i]));
  auto wider = builder.CreateVector(cpuCodes);
  auto explanation = options.explanation.empty()
                         ? flatbuffers::Offset<flatbuffers::String>()
                         : builder.CreateString(options.explanation);
  flatbuffers::Offset<flatbuffers::String> noPrediction;
  if (auto reason = module->getAttrOfType<StringAttr>(noPredictionAttrName))
    noPrediction = builder.CreateString(reason.getValue().str());
  int64_t arena =
      module->getAttrOfType<IntegerAttr>(arenaBytesAttrName).getInt();

  fb::PlanBuilder root(builder);
  root.add_version(pipeline.IsNull() ? rt::planVersion
                                     : rt::pipelinePlanVersion);
  root.add_producer(producer);
  root.add_model(modelOffset);
  // Anything but the default, so that the field has a place.
  root.add_fingerprint(1);
  root.add_cpu_target(cpuTarget);
  root.add_gpu_target(gpuTarget);
  root.add_cpu_features(featuresOffset);
  root.add_mesh(mesh);
  root.add_batch_size(getBatchSize(module));
  root.add_tensors(tensorsOffset);
  root.add_programs(programsOffset);
  root.add_kernels(kernelsOffset);
  root.add_code(code);
  root.add_cubin(cubin);
  root.add_wider_codes(wider);
  root.add_arena_bytes(arena);
  root.add_alignment(bufferAlignment);
  root.add_memory(memory);
  root.add_pipeline(pipeline);
  root.add_explanation(explanation);
  root.add_no_prediction(noPrediction);
  fb::FinishPlanBuffer(builder, root.Finish());

  std::string bytes(reinterpret_cast<const char *>(builder.GetBufferPointer()),
                    builder.GetSize());
  flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes.data())
      ->SetField<uint64_t>(fb::Plan::VT_FINGERPRINT, getFingerprint(bytes), 1);
  return bytes;
}

llvm::Expected<std::string> compilePlan(ModuleOp module,
                                        const PlanOptions &options) {
  llvm::Expected<KernelCode> code = compileCode(module, options);
  if (!code)
    return code.takeError();
  return buildPlan(module, options, *code);
}

} // namespace shardc
