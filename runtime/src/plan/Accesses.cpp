//===- Accesses.cpp - The memory that commands read and write -------------===//

#include "plan/Accesses.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

namespace {

/// Collects the operands of one command.
class OperandCollector {
public:
  explicit OperandCollector(const ProgramSpec &program) : program(program) {}

  void operator()(const LaunchCommand &launch) {
    size_t firstWritten = launch.buffers.size() - launch.writes;
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      operands.push_back({launch.buffers[i], i >= firstWritten});
  }
  void operator()(const GemmCommand &gemm) {
    read(gemm.a);
    read(gemm.b);
    if (gemm.bias >= 0)
      read(gemm.bias);
    write(gemm.c);
    if (gemm.accumulate)
      read(gemm.c);
    if (gemm.columnSums >= 0)
      write(gemm.columnSums);
  }
  void operator()(const CollectiveStartCommand &start) {
    for (const CollectiveItem &item : start.items) {
      read(item.in);
      write(item.out);
    }
  }
  void operator()(const CollectiveWaitCommand &) {}
  void operator()(const CopyCommand &copy) {
    read(copy.in);
    write(copy.out);
  }
  void operator()(const ClearCommand &clear) { write(clear.buffer); }
  void operator()(const LoopCommand &) {}
  /// It writes a tensor, which no buffer names.
  void operator()(const UploadCommand &) {}
  void operator()(const DownloadCommand &download) {
    read(program.results[download.result].buffer);
  }
  void operator()(const SendCommand &send) {
    for (uint32_t buffer : send.buffers)
      read(buffer);
  }
  void operator()(const ReceiveCommand &receive) {
    for (uint32_t buffer : receive.buffers)
      write(buffer);
  }

  std::vector<Operand> operands;

private:
  void read(uint32_t buffer) { operands.push_back({buffer, false}); }
  void write(uint32_t buffer) { operands.push_back({buffer, true}); }

  const ProgramSpec &program;
};

} // namespace

std::vector<Operand> shardc::rt::operandsOf(const ProgramSpec &program,
                                            const Command &command) {
  OperandCollector collector(program);
  std::visit(collector, command.operation);
  return std::move(collector.operands);
}

std::vector<Operand> shardc::rt::operandsOf(const LaunchCommand &launch,
                                            const LaunchPart &part) {
  std::vector<Operand> operands;
  for (uint32_t position : part.buffers)
    operands.push_back({launch.buffers[position],
                        position >= launch.buffers.size() - launch.writes});
  return operands;
}

std::vector<Access> shardc::rt::accessesOf(const PlanSpec &plan,
                                           const ProgramSpec &program,
                                           const Command &command,
                                           int64_t runs) {
  bool isCollective =
      std::holds_alternative<CollectiveStartCommand>(command.operation);
  const uint64_t unit = isCollective ? plan.alignment : 1;
  std::vector<Access> accesses;
  for (const Operand &operand : operandsOf(program, command)) {
    ByteRange bytes = bytesOf(program.buffers[operand.buffer], runs);
    bytes.end = (bytes.end + unit - 1) / unit * unit;
    accesses.push_back({bytes, operand.isWrite, operand.buffer});
  }
  if (auto *upload = std::get_if<UploadCommand>(&command.operation)) {
    const TensorSpec &tensor = plan.tensors[upload->tensor];
    accesses.push_back(
        {{tensor.offset, tensor.offset + tensor.bytes}, true, -1});
  }
  return accesses;
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
      "launch",   "gemm",  "collective", "collective_wait",
      "copy",     "clear", "loop",       "upload",
      "download", "send",  "receive"};
  return names[command.operation.index()];
}
