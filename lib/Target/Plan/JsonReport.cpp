//===- JsonReport.cpp - Reports for programs ------------------------------===//

#include "shardc/Target/Plan/Report.h"

#include "CommunicationLines.h"
#include "PlanText.h"
#include "PlannedPipeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

static std::string getText(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

static json::Array toJson(ArrayRef<int64_t> sizes) {
  return json::Array(sizes);
}

/// The collectives of the programs `name`, of all ranks of a pipeline in their
/// order. By rank, where its first one is, comes into `begins`.
static json::Array getCollectives(const fb::Plan &plan, StringRef name,
                                  std::vector<size_t> *begins = nullptr) {
  json::Array lines;
  size_t numRanks = plan.pipeline() ? plan.pipeline()->ranks()->size() : 1;
  for (size_t rank = 0; rank < numRanks; ++rank) {
    if (begins)
      begins->push_back(lines.size());
    const fb::Program *program = findProgram(
        plan, name, plan.pipeline() ? static_cast<int64_t>(rank) : -1);
    if (!program)
      continue;
    for (const CommunicationLine &line :
         getCommunicationLines(*program).lines) {
      json::Array axes;
      for (const flatbuffers::String *axis : *line.first->axes())
        axes.push_back(axis->str());
      json::Object object{{"kind", getName(line.first->kind())},
                          {"axes", std::move(axes)},
                          {"group_size", line.first->group_size()},
                          {"bytes", static_cast<int64_t>(line.first->bytes())},
                          {"runs", static_cast<int64_t>(line.runs)},
                          {"wire_bytes", static_cast<int64_t>(line.wireBytes)},
                          {"microseconds", line.seconds * 1e6},
                          {"part", getName(line.first->part())},
                          {"source", getText(line.first->source())},
                          {"cause", getText(line.first->cause())}};
      if (plan.pipeline())
        object["rank"] = static_cast<int64_t>(rank);
      lines.push_back(std::move(object));
    }
  }
  return lines;
}

/// What `program` computes again, and the peak without that.
static json::Object recomputeToJson(const fb::Recompute &table) {
  json::Object object{
      {"policy", getText(table.policy())},
      {"matmul_flops_per_device", static_cast<int64_t>(table.matmul_flops())},
      {"microseconds", table.seconds() * 1e6}};
  if (table.other_arena_bytes())
    object["other_peak_bytes"] =
        static_cast<int64_t>(table.other_arena_bytes());
  return object;
}

static json::Object timeToJson(const fb::TimeEstimate &time) {
  json::Object object{
      {"machine", getText(time.machine())},
      {"microseconds", getSeconds(time) * 1e6},
      {"compute_microseconds", time.compute() * 1e6},
      {"memory_microseconds", time.memory() * 1e6},
      {"communication_microseconds", time.communication() * 1e6},
      {"overlapped_microseconds", time.overlapped() * 1e6}};
  if (time.inputs() > 0)
    object["input_microseconds"] = time.inputs() * 1e6;
  if (!time.ops())
    return object;
  json::Array ops;
  for (const fb::OpTime *op : *time.ops()) {
    json::Object entry{{"name", getText(op->name())},
                       {"source", getText(op->source())},
                       {"part", getName(op->part())},
                       {"communicates", op->communicates()},
                       {"start_microseconds", op->start() * 1e6},
                       {"microseconds", op->seconds() * 1e6}};
    if (op->gemm_flops() > 0) {
      entry["gemm_flops"] = op->gemm_flops();
      entry["memory_bytes"] = op->memory_bytes();
    }
    ops.push_back(std::move(entry));
  }
  object["ops"] = std::move(ops);
  object["gemm_flops_per_second"] = time.gemm_flops_per_second();
  object["memory_bytes_per_second"] = time.memory_bytes_per_second();
  return object;
}

/// The cost of one run of `program`.
static void addTotals(const fb::Plan &plan, const fb::Program &program,
                      json::Object &report) {
  report["wire_bytes_per_device"] = static_cast<int64_t>(program.wire_bytes());
  uint64_t flops = 0; // Of a pipeline those of the rank that has most.
  for (const fb::Program *other : *plan.programs())
    if (other->name()->str() == program.name()->str())
      flops = std::max(flops, other->matmul_flops());
  report["matmul_flops_per_device"] = static_cast<int64_t>(flops);
  // Not known of the ranks of a pipeline.
  if (program.rank() < 0) {
    report["redundant_matmul_flops_per_device"] =
        static_cast<int64_t>(getRedundantFlops(plan, program));
    report["global_matmul_flops"] =
        static_cast<int64_t>(program.global_matmul_flops());
  }
  if (std::optional<RegatherCost> cost = getRegatherCost(plan, program))
    report["regather"] = toJson(*cost);
  if (const fb::Recompute *table = program.recompute())
    report["recompute"] = recomputeToJson(*table);
  if (const fb::TimeEstimate *time = program.time())
    report["time"] = timeToJson(*time);
}

/// The memory of a device and what lies in it at the peak.
static json::Object memoryToJson(const fb::MemoryReport *report) {
  json::Object memory;
  json::Array largest;
  if (report && report->entries())
    for (const fb::MemoryEntry *entry : *report->entries())
      memory[getName(entry->kind())] = static_cast<int64_t>(entry->bytes());
  if (report && report->largest())
    for (const fb::LargestBuffer *buffer : *report->largest())
      largest.push_back(
          json::Object{{"name", getText(buffer->name())},
                       {"bytes", static_cast<int64_t>(buffer->bytes())},
                       {"kind", getName(buffer->kind())},
                       {"source", getText(buffer->source())}});
  memory["largest"] = std::move(largest);
  if (report && report->lifetimes()) {
    json::Array buffers;
    for (const fb::BufferLifetime *buffer : *report->lifetimes())
      buffers.push_back(
          json::Object{{"name", getText(buffer->name())},
                       {"bytes", static_cast<int64_t>(buffer->bytes())},
                       {"kind", getName(buffer->kind())},
                       {"source", getText(buffer->source())},
                       {"first", buffer->first()},
                       {"last", buffer->last()}});
    memory["over_time"] = json::Object{{"ops", report->steps()},
                                       {"peak", report->peak_step()},
                                       {"buffers", std::move(buffers)}};
  }
  return memory;
}

/// Adds the buckets of `step` to `buckets`. `begin` is where its collectives
/// are among those of the report.
static void addBuckets(const fb::Program *step, const fb::MemoryReport *memory,
                       size_t begin, json::Array &buckets) {
  if (!step || !memory || !memory->buckets())
    return;
  CommunicationLines lines = getCommunicationLines(*step);
  for (const fb::Bucket *bucket : *memory->buckets())
    if (bucket->collective() < lines.lineOf.size())
      buckets.push_back(json::Object{
          {"collective",
           static_cast<int64_t>(begin + lines.lineOf[bucket->collective()])},
          {"tensors", bucket->tensors()},
          {"operand_regions", bucket->operand_regions()},
          {"result_regions", bucket->result_regions()}});
}

/// With a pipeline the memory of the first rank with the largest arena, but the
/// buckets of all. `begins` is by rank where its collectives begin.
static json::Object memoryToJson(const fb::Plan &plan,
                                 ArrayRef<size_t> begins) {
  json::Array buckets;
  json::Object memory;
  if (!plan.pipeline()) {
    memory = memoryToJson(plan.memory());
    addBuckets(findProgram(plan, "train_step"), plan.memory(), 0, buckets);
  } else {
    const fb::PipelineRank *largest = nullptr;
    for (auto [number, rank] : enumerate(*plan.pipeline()->ranks())) {
      if (!largest || rank->arena_bytes() > largest->arena_bytes())
        largest = rank;
      addBuckets(findProgram(plan, "train_step", number), rank->memory(),
                 begins[number], buckets);
    }
    memory = memoryToJson(largest ? largest->memory() : nullptr);
  }
  memory["buckets"] = std::move(buckets);
  return memory;
}

/// Of a pipeline, by rank what differs between ranks.
static Expected<json::Object> pipelineToJson(const fb::Plan &plan,
                                             ReportKinds kinds) {
  Expected<PlannedPipeline> planned = getPlannedPipeline(plan);
  if (!planned)
    return planned.takeError();
  const fb::Pipeline &pipeline = *plan.pipeline();
  json::Array ranks, stages;
  for (uint16_t rank : *pipeline.stages())
    stages.push_back(rank);
  uint64_t wireBytes = 0;
  for (auto [number, step] : enumerate(planned->steps)) {
    const fb::PipelineRank *rank = pipeline.ranks()->Get(number);
    wireBytes += step->wire_bytes();
    json::Array starts, seconds;
    for (SimulatedTask task : planned->simulation.tasks[number]) {
      starts.push_back(task.start * 1e6);
      seconds.push_back((task.end - task.start) * 1e6);
    }
    json::Object object{
        {"peak_bytes_per_device", static_cast<int64_t>(rank->arena_bytes())},
        {"wire_bytes_per_device", static_cast<int64_t>(step->wire_bytes())},
        {"matmul_flops_per_device", static_cast<int64_t>(step->matmul_flops())},
        {"tasks", getTasksText(*step)},
        {"start_microseconds", std::move(starts)},
        {"task_microseconds", std::move(seconds)},
        {"live_microbatches", planned->liveMicrobatches[number]},
        {"busy_microseconds", planned->simulation.busy[number] * 1e6},
        {"idle", planned->getIdleShare(number)}};
    if (kinds.memory)
      object["memory"] = memoryToJson(rank->memory());
    if (const fb::Recompute *table = step->recompute())
      object["recompute"] = recomputeToJson(*table);
    ranks.push_back(std::move(object));
  }
  return json::Object{
      {"axis", plan.mesh()->axes()->Get(pipeline.axis())->name()->str()},
      {"schedule", pipeline.schedule()->str()},
      {"microbatches", pipeline.microbatches()},
      {"rank_of_stage", std::move(stages)},
      {"makespan_microseconds", planned->simulation.makespan * 1e6},
      {"bubble", planned->simulation.getBubble()},
      {"step_microseconds", pipeline.seconds() * 1e6},
      {"wire_bytes_of_all_ranks", static_cast<int64_t>(wireBytes)},
      {"ranks", std::move(ranks)}};
}

static json::Array getShardings(const fb::Plan &plan) {
  json::Array tensors;
  for (const fb::Tensor *tensor : *plan.tensors()) {
    SmallVector<int64_t> shape = toSizes(tensor->shape());
    SmallVector<int64_t> local =
        getLocalShape(plan, shape, *tensor->sharding());
    json::Array dims;
    for (const fb::DimSharding *dim : *tensor->sharding()->dims()) {
      json::Array axes;
      if (dim->axes())
        for (uint16_t axis : *dim->axes())
          axes.push_back(plan.mesh()->axes()->Get(axis)->name()->str());
      dims.push_back(std::move(axes));
    }
    tensors.push_back(
        json::Object{{"name", tensor->name()->str()},
                     {"role", getName(tensor->role())},
                     {"dtype", getName(tensor->dtype())},
                     {"shape", toJson(shape)},
                     {"sharding", std::move(dims)},
                     {"local_shape", toJson(local)},
                     {"bytes", static_cast<int64_t>(tensor->bytes())}});
  }
  return tensors;
}

Expected<json::Object> shardc::getJsonReports(StringRef bytes,
                                              ReportKinds kinds,
                                              json::Object options) {
  Expected<const fb::Plan *> read = readPlan(bytes);
  if (!read)
    return read.takeError();
  const fb::Plan &plan = **read;
  json::Object mesh;
  json::Array axes;
  for (const fb::Axis *axis : *plan.mesh()->axes()) {
    mesh[axis->name()->str()] = axis->size();
    axes.push_back(axis->name()->str());
  }
  json::Array wider;
  if (plan.wider_codes())
    for (const fb::CpuCode *code : *plan.wider_codes())
      wider.push_back(code->cpu_target()->str());
  json::Object report{
      {"model", getText(plan.model())},
      {"mesh", std::move(mesh)},
      {"mesh_axes", std::move(axes)},
      {"num_devices", getNumDevices(plan)},
      {"batch_size", plan.batch_size()},
      {"cpu_target", getText(plan.cpu_target())},
      {"wider_cpu_targets", std::move(wider)},
      {"gpu_target", getText(plan.gpu_target())},
      {"cubin_bytes",
       plan.cubin() ? static_cast<int64_t>(plan.cubin()->size()) : 0},
      {"peak_bytes_per_device", static_cast<int64_t>(plan.arena_bytes())}};
  if (!options.empty())
    report["compile_options"] = std::move(options);
  if (plan.pipeline()) {
    Expected<json::Object> pipeline = pipelineToJson(plan, kinds);
    if (!pipeline)
      return pipeline.takeError();
    report["pipeline"] = std::move(*pipeline);
  }
  std::vector<size_t> begins;
  if (const fb::Program *step = findLargestProgram(plan, "train_step"))
    addTotals(plan, *step, report);
  // Of a pipeline the program of one rank has it, for all.
  for (const fb::Program *program : *plan.programs())
    if (std::optional<PlanCost> cost = getPlanCost(*program);
        cost && program->name()->str() == "train_step")
      report["cost"] = toJson(*cost);
  json::Array collectives = getCollectives(plan, "train_step", &begins);
  if (kinds.communication && findLargestProgram(plan, "train_step"))
    report["collectives"] = std::move(collectives);
  for (const char *name : {"evaluate", "predict"})
    if (const fb::Program *program = findLargestProgram(plan, name);
        program && kinds.communication) {
      json::Object totals{{"collectives", getCollectives(plan, name)}};
      addTotals(plan, *program, totals);
      report[name] = std::move(totals);
    }
  if (kinds.memory)
    report["memory"] = memoryToJson(plan, begins);
  if (kinds.shardings)
    report["shardings"] = getShardings(plan);
  if (kinds.explanation) {
    Expected<Explanation> explanation = readExplanation(bytes);
    if (!explanation)
      return explanation.takeError();
    const flatbuffers::String *text = plan.explanation();
    report["explanation"] =
        cantFail(json::parse(StringRef(text->data(), text->size())));
  }
  return report;
}

Error shardc::printJsonReports(StringRef bytes, ReportKinds kinds,
                               json::Object options, raw_ostream &os) {
  Expected<json::Object> report =
      getJsonReports(bytes, kinds, std::move(options));
  if (!report)
    return report.takeError();
  os << formatv("{0:2}", json::Value(std::move(*report))) << "\n";
  return Error::success();
}
