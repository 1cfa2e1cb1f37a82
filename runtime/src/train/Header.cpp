//===- Header.cpp - The summary before the first step ---------------------===//

#include "train/Header.h"

#include "backends/cpu/Gemm.h"
#include "plan/PlanSpec.h"
#include "train/Format.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <variant>

using namespace shardc::rt;

/// "5 collectives"; with a pipeline "8 sends, counted in each of 4
/// microbatches, and 1 collective".
static std::string describeCollectives(const ProgramSpec &program,
                                       int64_t microbatches) {
  auto count = [](size_t number, absl::string_view noun) {
    return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
  };
  // Every send has a line of the report.
  size_t sends = absl::c_count_if(program.commands, [](const Command &command) {
    return std::holds_alternative<SendCommand>(command.operation);
  });
  size_t others = program.collectives.size() - sends;
  if (sends == 0)
    return count(others, "collective");
  bool isCounted = microbatches > 1;
  return absl::StrCat(count(sends, "send"),
                      isCounted ? absl::StrCat(", counted in each of ",
                                               microbatches, " microbatches")
                                : "",
                      others == 0 ? ""
                                  : absl::StrCat(isCounted ? "," : "", " and ",
                                                 count(others, "collective")));
}

/// Whether a step multiplies factors of bf16 outside of generated code.
static bool hasHalfGemms(const ProgramSpec &program) {
  return absl::c_any_of(program.commands, [&](const Command &command) {
    const auto *gemm = std::get_if<GemmCommand>(&command.operation);
    return gemm && program.typesOf(*gemm).factors == DType::BF16;
  });
}

void shardc::rt::printHeader(const Plan &plan, const std::string &devices,
                             const std::string &cpuTarget, std::ostream &out) {
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
  const ProgramSpec *program = plan.spec().findProgram("train_step");
  if (program && !plan.isForGpu() && hasHalfGemms(*program))
    printField("bf16", describeHalfGemms(cpuTarget), out);
  if (program)
    printField("communication",
               absl::StrCat(
                   formatBytes(program->wireBytes), " per device and step in ",
                   describeCollectives(*program,
                                       plan.spec().pipeline
                                           ? plan.spec().pipeline->microbatches
                                           : 1)),
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
