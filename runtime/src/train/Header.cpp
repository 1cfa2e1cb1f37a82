//===- Header.cpp - The summary before the first step ---------------------===//

#include "train/Header.h"

#include "plan/PlanSpec.h"
#include "train/Format.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

void shardc::rt::printHeader(const Plan &plan, const std::string &devices,
                             std::ostream &out) {
  int64_t parameters = 0, tensors = 0;
  for (const TensorInfo &tensor : plan.tensors())
    if (tensor.role == Role::Parameter) {
      parameters += numElements(tensor.shape);
      ++tensors;
    }
  printField("model",
             absl::StrCat(plan.model(), ": ", formatCount(parameters),
                          " parameters in ", tensors, " tensors, batch ",
                          plan.batchSize()),
             out);
  printField("mesh", absl::StrCat(plan.mesh(), ": ", devices), out);
  if (const std::optional<PipelineSpec> &pipeline = plan.spec().pipeline)
    printField("pipeline",
               absl::StrCat(pipeline->schedule, ": ", pipeline->stages.size(),
                            " stages on ", pipeline->ranks.size(), " ranks, ",
                            pipeline->microbatches, " microbatches"),
               out);
  std::string memory =
      absl::StrCat(formatBytes(plan.arenaBytes()), " per device");
  const char *separator = ": ";
  for (const MemoryReport::Entry &entry : plan.spec().memory.entries) {
    if (entry.bytes == 0)
      continue;
    absl::StrAppend(&memory, separator, toString(entry.kind), " ",
                    formatBytes(entry.bytes));
    separator = ", ";
  }
  printField("memory", memory, out);
  if (const ProgramSpec *program = plan.spec().findProgram("train_step"))
    printField("communication",
               absl::StrCat(formatBytes(program->wireBytes),
                            " per device and step in ",
                            program->collectives.size(),
                            program->collectives.size() == 1 ? " collective"
                                                             : " collectives"),
               out);
}

void shardc::rt::printMemory(const Executor &executor, std::ostream &out) {
  int64_t devices = executor.plan().numDevices();
  uint64_t each = executor.allocatedBytesPerDevice();
  if (executor.allocatedBytes() < devices * each)
    printField("replicas",
               absl::StrCat("devices that hold the same share it: all ",
                            devices, " need ",
                            formatBytes(executor.allocatedBytes()),
                            " in place of ", formatBytes(devices * each)),
               out);
}
