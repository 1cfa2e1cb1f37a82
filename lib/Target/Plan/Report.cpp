//===- Report.cpp - Reports for people ------------------------------------===//

#include "shardc/Target/Plan/Report.h"

#include "CommunicationLines.h"
#include "PlanText.h"
#include "PlannedPipeline.h"

#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/PipelineSchedules/DrawSchedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

static std::string getAxesText(const fb::CollectiveReport &line) {
  std::string axes;
  for (const flatbuffers::String *axis : *line.axes())
    axes += (axes.empty() ? "" : ",") + axis->str();
  return axes;
}

static void printTime(const fb::TimeEstimate &time, raw_ostream &os) {
  std::string work = "compute " + getMicrosecondsText(time.compute()) +
                     " + memory " + getMicrosecondsText(time.memory()) +
                     " + communication " +
                     getMicrosecondsText(time.communication());
  const double seconds = getSeconds(time);
  if (time.inputs() > 0) {
    std::string inputs =
        "inputs from the host " + getMicrosecondsText(time.inputs());
    work = seconds > time.inputs() ? work + ", beside " + inputs
                                   : inputs + ", beside " + work;
  }
  os << "  estimated on " << (time.machine() ? time.machine()->str() : "")
     << ": " << getMicrosecondsText(seconds) << " us = " << work
     << "; with overlap " << getMicrosecondsText(time.overlapped()) << " us\n";
}

static void printCommunication(const fb::Plan &plan, const fb::Program &program,
                               raw_ostream &os) {
  // Each device rounds its own shards.
  if (kRoundParametersName == program.name()->c_str())
    return;
  os << "Communication of " << program.name()->str()
     << ", bytes per device and run";
  if (program.rank() >= 0)
    os << ", on pipeline rank " << program.rank();
  os << '\n';
  std::vector<std::vector<std::string>> rows = {{"kind", "axes", "group",
                                                 "tensor", "wire", "us", "part",
                                                 "source", "cause"}};
  for (const CommunicationLine &line : getCommunicationLines(program).lines) {
    std::string cause = line.first->cause() ? line.first->cause()->str() : "";
    if (line.runs > 1)
      cause += " (in each of " + std::to_string(line.runs) + " microbatches)";
    rows.push_back(
        {getName(line.first->kind()).str(), getAxesText(*line.first),
         std::to_string(line.first->group_size()),
         std::to_string(line.first->bytes()), std::to_string(line.wireBytes),
         getMicrosecondsText(line.seconds), getName(line.first->part()).str(),
         line.first->source() ? line.first->source()->str() : "", cause});
  }
  if (rows.size() == 1)
    os << "  none\n";
  else
    os << getTableText(rows, {2, 3, 4, 5});
  os << "  total: " << program.wire_bytes() << " bytes on the wire, "
     << program.matmul_flops() << " matmul FLOPs";
  if (program.global_matmul_flops())
    os << ", of which " << getRedundantFlops(plan, program) << " redundant";
  os << '\n';
  if (std::optional<RegatherCost> cost = getRegatherCost(plan, program))
    os << "  " << toString(*cost) << '\n';
  if (std::string text = getRecomputeText(plan, program); !text.empty())
    os << "  " << text << '\n';
  if (std::optional<PlanCost> cost = getPlanCost(program))
    os << "  " << toString(*cost) << '\n';
  if (program.time())
    printTime(*program.time(), os);
}

static void printMemory(const fb::MemoryReport *memory, raw_ostream &os) {
  if (!memory)
    return;
  if (memory->entries()) {
    std::vector<std::vector<std::string>> rows = {{"at the peak", "bytes"}};
    for (const fb::MemoryEntry *entry : *memory->entries())
      rows.push_back(
          {getName(entry->kind()).str(), std::to_string(entry->bytes())});
    os << getTableText(rows, {1});
  }
  if (memory->largest()) {
    std::vector<std::vector<std::string>> rows = {
        {"largest buffers", "bytes", "kind", "source"}};
    for (const fb::LargestBuffer *buffer : *memory->largest())
      rows.push_back({buffer->name() ? buffer->name()->str() : "",
                      std::to_string(buffer->bytes()),
                      getName(buffer->kind()).str(),
                      buffer->source() ? buffer->source()->str() : ""});
    os << getTableText(rows, {1});
  }
}

/// Whether the tensors of each bucket of `step` are one region.
static void printBuckets(const fb::Program *step,
                         const fb::MemoryReport *memory, raw_ostream &os) {
  if (!step || !step->collectives() || !memory || !memory->buckets() ||
      memory->buckets()->size() == 0)
    return;
  auto getText = [](uint32_t regions) {
    return regions == 1 ? std::string("one region")
                        : std::to_string(regions) + " regions";
  };
  std::vector<std::vector<std::string>> rows = {
      {"buckets", "tensors", "bytes", "operands in", "results in"}};
  for (const fb::Bucket *bucket : *memory->buckets()) {
    if (bucket->collective() >= step->collectives()->size())
      continue;
    const auto *line = step->collectives()->Get(bucket->collective());
    rows.push_back({getName(line->kind()).str() + " " + getAxesText(*line),
                    std::to_string(bucket->tensors()),
                    std::to_string(line->bytes()),
                    getText(bucket->operand_regions()),
                    getText(bucket->result_regions())});
  }
  os << getTableText(rows, {1, 2});
}

static void printMemory(const fb::Plan &plan, raw_ostream &os) {
  os << "Memory per device: " << plan.arena_bytes() << " bytes ("
     << getBytesText(plan.arena_bytes()) << ")\n";
  if (!plan.pipeline()) {
    printMemory(plan.memory(), os);
    printBuckets(findProgram(plan, "train_step"), plan.memory(), os);
    return;
  }
  for (auto [number, rank] : enumerate(*plan.pipeline()->ranks())) {
    os << "Memory per device of pipeline rank " << number << ": "
       << rank->arena_bytes() << " bytes (" << getBytesText(rank->arena_bytes())
       << ")\n";
    printMemory(rank->memory(), os);
    printBuckets(findProgram(plan, "train_step", number), rank->memory(), os);
  }
}

/// "4", "5.5".
static std::string getShortText(double number) {
  std::string text;
  raw_string_ostream(text) << format("%g", number);
  return text;
}

static std::string getPercentText(double share) {
  return formatv("{0:f1} %", 100 * share).str();
}

/// The order of the tasks and its figures, by the estimated times.
static Error printPipeline(const fb::Plan &plan, raw_ostream &os) {
  const fb::Pipeline *pipeline = plan.pipeline();
  if (!pipeline) {
    os << "Pipeline: none\n";
    return Error::success();
  }
  Expected<PlannedPipeline> planned = getPlannedPipeline(plan);
  if (!planned)
    return planned.takeError();
  const PipelineSchedule &schedule = planned->schedule;
  const PipelineSimulation &simulation = planned->simulation;
  os << "Pipeline " << pipeline->schedule()->str() << ": "
     << schedule.getNumRanks() << " ranks, " << schedule.getNumStages()
     << " stages, " << schedule.microbatches
     << " microbatches; tasks over time, by estimated times\n";
  std::string picture = drawSchedule(schedule, simulation);
  for (StringRef line : split(StringRef(picture).rtrim('\n'), '\n'))
    os << "  " << line << '\n';
  std::vector<std::vector<std::string>> rows = {
      {"rank", "stages", "live microbatches", "busy us", "idle", "wire bytes",
       "peak bytes"}};
  uint64_t wireBytes = 0;
  for (auto [rank, step] : enumerate(planned->steps)) {
    std::string stages;
    for (auto [stage, rankOfStage] : enumerate(schedule.rankOfStage))
      if (rankOfStage == static_cast<int>(rank))
        stages += (stages.empty() ? "" : ",") + std::to_string(stage);
    wireBytes += step->wire_bytes();
    rows.push_back(
        {std::to_string(rank), stages,
         getShortText(planned->liveMicrobatches[rank]),
         getMicrosecondsText(simulation.busy[rank]),
         getPercentText(planned->getIdleShare(rank)),
         std::to_string(step->wire_bytes()),
         std::to_string(pipeline->ranks()->Get(rank)->arena_bytes())});
  }
  rows.push_back({"all", "", "", "", "", std::to_string(wireBytes), ""});
  os << getTableText(rows, {0, 2, 3, 4, 5, 6});
  os << "  makespan of the tasks: " << getMicrosecondsText(simulation.makespan)
     << " us, bubble " << getPercentText(simulation.getBubble()) << '\n';
  return Error::success();
}

static void printShardings(const fb::Plan &plan, raw_ostream &os) {
  os << "Shardings over mesh " << getMeshText(plan) << "\n";
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "role", "type", "sharding", "per device", "bytes"}};
  for (const fb::Tensor *tensor : *plan.tensors()) {
    SmallVector<int64_t> shape = toSizes(tensor->shape());
    SmallVector<int64_t> local =
        getLocalShape(plan, shape, *tensor->sharding());
    rows.push_back({tensor->name()->str(), getName(tensor->role()).str(),
                    getName(tensor->dtype()).str() + getShapeText(shape),
                    getShardingText(plan, *tensor->sharding()),
                    getShapeText(local), std::to_string(tensor->bytes())});
  }
  os << getTableText(rows, {5});
  os << "Devices that hold each slice\n";
  // Tensors with the same sharding share a picture.
  std::vector<std::pair<std::string, std::string>> pictures;
  for (const fb::Tensor *tensor : *plan.tensors()) {
    SmallVector<int64_t> shape = toSizes(tensor->shape());
    std::string picture = getPictureText(plan, shape, *tensor->sharding());
    auto known =
        find_if(pictures, [&](const auto &it) { return it.second == picture; });
    if (known == pictures.end())
      pictures.emplace_back(tensor->name()->str(), picture);
    else
      known->first += ", " + tensor->name()->str();
  }
  for (const auto &[names, picture] : pictures)
    os << "  " << names << "\n" << picture;
}

Error shardc::checkPlan(StringRef bytes) { return readPlan(bytes).takeError(); }

Error shardc::printReports(StringRef bytes, ReportKinds kinds,
                           raw_ostream &os) {
  Expected<const fb::Plan *> plan = readPlan(bytes);
  if (!plan)
    return plan.takeError();
  const char *separator = "";
  if (kinds.communication)
    for (const fb::Program *program : *(*plan)->programs()) {
      os << separator;
      printCommunication(**plan, *program, os);
      separator = "\n";
    }
  if (kinds.pipeline) {
    os << separator;
    if (Error error = printPipeline(**plan, os))
      return error;
    separator = "\n";
  }
  if (kinds.memory) {
    os << separator;
    printMemory(**plan, os);
    separator = "\n";
  }
  if (kinds.shardings) {
    os << separator;
    printShardings(**plan, os);
    separator = "\n";
  }
  if (!kinds.explanation)
    return Error::success();
  Expected<Explanation> explanation = readExplanation(bytes);
  if (!explanation)
    return explanation.takeError();
  os << separator;
  print(*explanation, os);
  return Error::success();
}

Expected<Explanation> shardc::readExplanation(StringRef bytes) {
  Expected<const fb::Plan *> plan = readPlan(bytes);
  if (!plan)
    return plan.takeError();
  const flatbuffers::String *text = (*plan)->explanation();
  if (!text)
    return createStringError("the plan holds no explanation: expected one that "
                             "shardc-compile wrote");
  return json::parse<Explanation>(StringRef(text->data(), text->size()));
}
