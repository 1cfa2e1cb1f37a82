//===- Accesses.cpp - The bytes that commands read and write --------------===//

#include "plan/Accesses.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

namespace {

/// Notes the accesses of one command.
class Collector {
public:
  Collector(const PlanSpec &plan, const ProgramSpec &program, int64_t runs)
      : plan(plan), program(program), runs(runs) {}

  void reads(uint32_t buffer, uint64_t unit = 1) { add(buffer, false, unit); }
  void writes(uint32_t buffer, uint64_t unit = 1) { add(buffer, true, unit); }
  void writesTensor(const TensorSpec &tensor) {
    accesses.push_back(
        {{tensor.offset, tensor.offset + tensor.bytes}, true, -1});
  }

  void operator()(const LaunchCommand &launch) {
    size_t firstWritten = launch.buffers.size() - launch.writes;
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      add(launch.buffers[i], i >= firstWritten, 1);
  }
  void operator()(const GemmCommand &gemm) {
    reads(gemm.a);
    reads(gemm.b);
    if (gemm.bias >= 0)
      reads(gemm.bias);
    writes(gemm.c);
    if (gemm.columnSums >= 0)
      writes(gemm.columnSums);
    if (gemm.mask >= 0)
      add(gemm.mask, gemm.activation == Activation::Relu, 1);
  }
  void operator()(const CollectiveStartCommand &start) {
    for (const CollectiveItem &item : start.items) {
      reads(item.in, plan.alignment);
      writes(item.out, plan.alignment);
    }
  }
  void operator()(const CollectiveWaitCommand &) {}
  void operator()(const CopyCommand &copy) {
    reads(copy.in);
    writes(copy.out);
  }
  void operator()(const ClearCommand &clear) { writes(clear.buffer); }
  void operator()(const LoopCommand &) {}
  void operator()(const UploadCommand &upload) {
    writesTensor(plan.tensors[upload.tensor]);
  }
  void operator()(const DownloadCommand &download) {
    reads(program.results[download.result].buffer);
  }

  std::vector<Access> accesses;

private:
  void add(uint32_t buffer, bool isWrite, uint64_t unit) {
    const BufferSpec &spec = program.buffers[buffer];
    uint64_t end = spec.offset;
    if (spec.bytes > 0)
      end += spec.bytes + (runs - 1) * spec.stride;
    accesses.push_back(
        {{spec.offset, (end + unit - 1) / unit * unit}, isWrite, buffer});
  }

  const PlanSpec &plan;
  const ProgramSpec &program;
  int64_t runs;
};

} // namespace

std::vector<Access> shardc::rt::accessesOf(const PlanSpec &plan,
                                           const ProgramSpec &program,
                                           const Command &command,
                                           int64_t runs) {
  Collector collector(plan, program, runs);
  std::visit(collector, command.operation);
  return std::move(collector.accesses);
}

std::string shardc::rt::describe(const PlanSpec &plan, const Access &access) {
  std::string place;
  for (const TensorSpec &tensor : plan.tensors)
    if (tensor.offset <= access.bytes.begin &&
        access.bytes.begin < tensor.offset + tensor.bytes)
      place = absl::StrCat("tensor \"", tensor.name, "\"");
  if (access.buffer < 0)
    return place;
  std::string name = absl::StrCat("buffer ", access.buffer);
  return place.empty() ? name : absl::StrCat(name, " (", place, ")");
}

absl::string_view shardc::rt::nameOf(const Command &command) {
  if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation))
    return toString(start->kind);
  constexpr absl::string_view names[] = {
      "launch", "gemm", "collective", "collective_wait", "copy",
      "clear",  "loop", "upload",     "download"};
  return names[command.operation.index()];
}
