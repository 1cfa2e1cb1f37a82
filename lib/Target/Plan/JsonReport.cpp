//===- JsonReport.cpp - Reports for programs ------------------------------===//

#include "shardc/Target/Plan/Report.h"

#include "PlanText.h"

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

static json::Array getCollectives(const fb::Program &program) {
  json::Array lines;
  if (!program.collectives())
    return lines;
  for (const fb::CollectiveReport *line : *program.collectives()) {
    json::Array axes;
    for (const flatbuffers::String *axis : *line->axes())
      axes.push_back(axis->str());
    lines.push_back(
        json::Object{{"kind", getName(line->kind())},
                     {"axes", std::move(axes)},
                     {"group_size", line->group_size()},
                     {"bytes", static_cast<int64_t>(line->bytes())},
                     {"runs", line->runs()},
                     {"wire_bytes", static_cast<int64_t>(line->wire_bytes())},
                     {"microseconds", line->seconds() * 1e6},
                     {"part", getName(line->part())},
                     {"source", getText(line->source())},
                     {"cause", getText(line->cause())}});
  }
  return lines;
}

/// The cost of one run of `program`.
static void addTotals(const fb::Plan &plan, const fb::Program &program,
                      json::Object &report) {
  report["wire_bytes_per_device"] = static_cast<int64_t>(program.wire_bytes());
  report["matmul_flops_per_device"] =
      static_cast<int64_t>(program.matmul_flops());
  // Not known of the ranks of a pipeline.
  if (program.rank() < 0) {
    report["redundant_matmul_flops_per_device"] =
        static_cast<int64_t>(getRedundantFlops(plan, program));
    report["global_matmul_flops"] =
        static_cast<int64_t>(program.global_matmul_flops());
  }
  if (std::optional<RegatherCost> cost = getRegatherCost(plan, program))
    report["regather"] = toJson(*cost);
  if (std::optional<PlanCost> cost = getPlanCost(program))
    report["cost"] = toJson(*cost);
  if (const fb::TimeEstimate *time = program.time())
    report["time"] = json::Object{
        {"machine", getText(time->machine())},
        {"microseconds", getSeconds(*time) * 1e6},
        {"compute_microseconds", time->compute() * 1e6},
        {"memory_microseconds", time->memory() * 1e6},
        {"communication_microseconds", time->communication() * 1e6},
        {"overlapped_microseconds", time->overlapped() * 1e6}};
}

/// Of a pipeline, by rank what differs between ranks.
static json::Object pipelineToJson(const fb::Plan &plan) {
  const fb::Pipeline &pipeline = *plan.pipeline();
  json::Array ranks, stages;
  for (uint16_t rank : *pipeline.stages())
    stages.push_back(rank);
  for (const fb::Program *step : *plan.programs()) {
    if (step->name()->str() != "train_step" || step->rank() < 0 ||
        static_cast<uint32_t>(step->rank()) >= pipeline.ranks()->size())
      continue;
    const fb::PipelineRank *rank = pipeline.ranks()->Get(step->rank());
    ranks.push_back(json::Object{
        {"peak_bytes_per_device", static_cast<int64_t>(rank->arena_bytes())},
        {"wire_bytes_per_device", static_cast<int64_t>(step->wire_bytes())},
        {"matmul_flops_per_device", static_cast<int64_t>(step->matmul_flops())},
        {"tasks", getTasksText(*step)}});
  }
  return json::Object{
      {"axis", plan.mesh()->axes()->Get(pipeline.axis())->name()->str()},
      {"schedule", pipeline.schedule()->str()},
      {"microbatches", pipeline.microbatches()},
      {"rank_of_stage", std::move(stages)},
      {"ranks", std::move(ranks)}};
}

/// The memory of a device; with a pipeline of the first with the largest arena.
static const fb::MemoryReport *getLargestMemory(const fb::Plan &plan) {
  if (!plan.pipeline())
    return plan.memory();
  for (const fb::PipelineRank *rank : *plan.pipeline()->ranks())
    if (rank->arena_bytes() == plan.arena_bytes())
      return rank->memory();
  return nullptr;
}

static json::Object memoryToJson(const fb::Plan &plan) {
  json::Object memory;
  json::Array largest;
  const fb::MemoryReport *report = getLargestMemory(plan);
  if (report) {
    if (report->entries())
      for (const fb::MemoryEntry *entry : *report->entries())
        memory[getName(entry->kind())] = static_cast<int64_t>(entry->bytes());
    if (report->largest())
      for (const fb::LargestBuffer *buffer : *report->largest())
        largest.push_back(
            json::Object{{"name", getText(buffer->name())},
                         {"bytes", static_cast<int64_t>(buffer->bytes())},
                         {"kind", getName(buffer->kind())},
                         {"source", getText(buffer->source())}});
  }
  memory["largest"] = std::move(largest);
  json::Array buckets;
  if (report && report->buckets())
    for (const fb::Bucket *bucket : *report->buckets())
      buckets.push_back(
          json::Object{{"collective", bucket->collective()},
                       {"tensors", bucket->tensors()},
                       {"operand_regions", bucket->operand_regions()},
                       {"result_regions", bucket->result_regions()}});
  memory["buckets"] = std::move(buckets);
  return memory;
}

static json::Array getShardings(const fb::Plan &plan) {
  json::Array tensors;
  for (const fb::Tensor *tensor : *plan.tensors()) {
    SmallVector<int64_t> shape = toSizes(tensor->shape());
    SmallVector<int64_t> local = shape;
    SmallVector<int64_t> counts = getShardCounts(plan, *tensor->sharding());
    for (auto [size, count] : zip(local, counts))
      size = (size + count - 1) / count;
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

Error shardc::printJsonReports(StringRef bytes, ReportKinds kinds,
                               json::Object options, raw_ostream &os) {
  Expected<const fb::Plan *> read = readPlan(bytes);
  if (!read)
    return read.takeError();
  const fb::Plan &plan = **read;
  json::Object mesh;
  for (const fb::Axis *axis : *plan.mesh()->axes())
    mesh[axis->name()->str()] = axis->size();
  json::Array wider;
  if (plan.wider_codes())
    for (const fb::CpuCode *code : *plan.wider_codes())
      wider.push_back(code->cpu_target()->str());
  json::Object report{
      {"model", getText(plan.model())},
      {"mesh", std::move(mesh)},
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
  if (plan.pipeline())
    report["pipeline"] = pipelineToJson(plan);
  if (const fb::Program *step = findLargestProgram(plan, "train_step")) {
    addTotals(plan, *step, report);
    if (kinds.communication)
      report["collectives"] = getCollectives(*step);
  }
  if (const fb::Program *evaluate = findLargestProgram(plan, "evaluate");
      evaluate && kinds.communication) {
    json::Object totals{{"collectives", getCollectives(*evaluate)}};
    addTotals(plan, *evaluate, totals);
    report["evaluate"] = std::move(totals);
  }
  if (kinds.memory)
    report["memory"] = memoryToJson(plan);
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
  os << formatv("{0:2}", json::Value(std::move(report))) << "\n";
  return Error::success();
}
