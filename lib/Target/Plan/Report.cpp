//===- Report.cpp - Reports for people ------------------------------------===//

#include "shardc/Target/Plan/Report.h"

#include "PlanText.h"

#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <map>

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

static std::string getAxesText(const fb::CollectiveReport &line) {
  std::string axes;
  for (const flatbuffers::String *axis : *line.axes())
    axes += (axes.empty() ? "" : ",") + axis->str();
  return axes;
}

namespace {

/// Collectives of one op, which the tasks of a pipeline have one by one.
struct ReportLine {
  const fb::CollectiveReport *first;
  uint64_t runs = 0, wireBytes = 0;
  double seconds = 0;
};

} // namespace

/// The lines of the table, in the order in which they come first.
static std::vector<ReportLine> getLines(const fb::Program &program) {
  std::vector<ReportLine> lines;
  if (!program.collectives())
    return lines;
  std::map<std::string, size_t> known;
  for (const fb::CollectiveReport *line : *program.collectives()) {
    std::string key;
    raw_string_ostream os(key);
    os << int(line->kind()) << ' ' << int(line->part()) << ' ' << line->bytes()
       << ' ' << getAxesText(*line) << '|'
       << (line->source() ? line->source()->str() : "") << '|'
       << (line->cause() ? line->cause()->str() : "");
    // Without a pipeline each is an op of its own.
    if (program.rank() < 0)
      os << '|' << lines.size();
    auto [it, isNew] = known.try_emplace(key, lines.size());
    if (isNew)
      lines.push_back({line});
    ReportLine &sum = lines[it->second];
    sum.runs += line->runs();
    sum.wireBytes += line->wire_bytes();
    sum.seconds += line->seconds();
  }
  return lines;
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
  if (std::string tasks = getTasksText(program); !tasks.empty())
    os << "  tasks: " << tasks << '\n';
  std::vector<std::vector<std::string>> rows = {{"kind", "axes", "group",
                                                 "tensor", "wire", "us", "part",
                                                 "source", "cause"}};
  for (const ReportLine &line : getLines(program)) {
    std::string cause = line.first->cause() ? line.first->cause()->str() : "";
    if (program.rank() >= 0 && line.runs > 1)
      cause += " (" + std::to_string(line.runs) + " times)";
    else if (line.runs > 1)
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
  if (std::optional<PlanCost> cost = getPlanCost(program))
    os << "  " << toString(*cost) << '\n';
  if (const fb::TimeEstimate *time = program.time())
    os << "  estimated on " << (time->machine() ? time->machine()->str() : "")
       << ": " << getMicrosecondsText(getSeconds(*time)) << " us = compute "
       << getMicrosecondsText(time->compute()) << " + memory "
       << getMicrosecondsText(time->memory()) << " + communication "
       << getMicrosecondsText(time->communication()) << "; with overlap "
       << getMicrosecondsText(time->overlapped()) << " us\n";
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

static void printMemory(const fb::Plan &plan, raw_ostream &os) {
  os << "Memory per device: " << plan.arena_bytes() << " bytes ("
     << getBytesText(plan.arena_bytes()) << ")\n";
  printMemory(plan.memory(), os);
  if (!plan.pipeline())
    return;
  for (auto [number, rank] : enumerate(*plan.pipeline()->ranks())) {
    os << "Memory per device of pipeline rank " << number << ": "
       << rank->arena_bytes() << " bytes (" << getBytesText(rank->arena_bytes())
       << ")\n";
    printMemory(rank->memory(), os);
  }
}

/// Whether the tensors of each bucket are one region.
static void printBuckets(const fb::Plan &plan, raw_ostream &os) {
  const fb::Program *step = findProgram(plan, "train_step");
  if (!step || !step->collectives() || !plan.memory() ||
      !plan.memory()->buckets() || plan.memory()->buckets()->size() == 0)
    return;
  auto getText = [](uint32_t regions) {
    return regions == 1 ? std::string("one region")
                        : std::to_string(regions) + " regions";
  };
  std::vector<std::vector<std::string>> rows = {
      {"buckets", "tensors", "bytes", "operands in", "results in"}};
  for (const fb::Bucket *bucket : *plan.memory()->buckets()) {
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

static void printShardings(const fb::Plan &plan, raw_ostream &os) {
  os << "Shardings over mesh " << getMeshText(plan) << "\n";
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "role", "type", "sharding", "per device", "bytes"}};
  for (const fb::Tensor *tensor : *plan.tensors()) {
    SmallVector<int64_t> shape = toSizes(tensor->shape());
    SmallVector<int64_t> local = shape;
    for (auto [size, count] :
         zip(local, getShardCounts(plan, *tensor->sharding())))
      size = (size + count - 1) / count;
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
  if (kinds.memory) {
    os << separator;
    printMemory(**plan, os);
    printBuckets(**plan, os);
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
