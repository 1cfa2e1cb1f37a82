//===- ReadCommands.cpp - Commands and the buffers they name --------------===//
//
// Reads the streams and dependences of all commands, and all commands except
// those that compute (ReadCompute.cpp) or communicate (ReadCollective.cpp).
//
//===----------------------------------------------------------------------===//

#include "plan/Accesses.h"
#include "plan/CommandReader.h"
#include "plan/ReadPlan.h"

#include "plan/HappensBefore.h"

using namespace shardc::rt;

/// A larger number of microbatches means a damaged file.
static constexpr int64_t maxRuns = int64_t(1) << 16;

absl::Status CommandReader::readCopy(const fb::Copy &file,
                                     CopyCommand &copy) const {
  copy = {file.in(), file.out()};
  for (uint32_t buffer : {copy.in, copy.out})
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
  if (program.buffers[copy.in].bytes != program.buffers[copy.out].bytes)
    return bad("a copy between buffers of ", program.buffers[copy.in].bytes,
               " and ", program.buffers[copy.out].bytes, " bytes");
  return absl::OkStatus();
}

absl::Status CommandReader::readClear(const fb::Clear &file,
                                      ClearCommand &clear) const {
  clear = {file.buffer()};
  return checkBuffer(clear.buffer);
}

absl::Status CommandReader::readLoop(const fb::Loop &file, LoopCommand &loop) {
  loop = {file.runs(), file.commands()};
  if (left > 0)
    return bad("a loop inside of a loop");
  if (loop.runs < 1 || loop.runs > maxRuns)
    return bad("a loop of ", loop.runs, " runs; expected 1 to ", maxRuns);
  if (loop.commands < 1)
    return bad("a loop without commands");
  return absl::OkStatus();
}

absl::Status CommandReader::readUpload(const fb::Upload &file,
                                       UploadCommand &upload) const {
  upload = {file.tensor()};
  if (upload.tensor >= plan.tensors.size())
    return bad("tensor ", upload.tensor, " of ", plan.tensors.size());
  Role role = plan.tensors[upload.tensor].role;
  if (role != Role::Input && role != Role::Label)
    return bad("tensor \"", plan.tensors[upload.tensor].name, "\" is a ",
               toString(role), ", which the host does not give");
  return absl::OkStatus();
}

absl::Status CommandReader::readDownload(const fb::Download &file,
                                         DownloadCommand &download) const {
  download = {file.result()};
  if (download.result >= program.results.size())
    return bad("result ", download.result, " of ", program.results.size());
  return checkBuffer(program.results[download.result].buffer);
}

/// The command's stream and dependences.
absl::Status CommandReader::readOrder(const fb::Command &file,
                                      Command &command) const {
  if (file.stream() > fb::Stream::MAX || file.stream() < fb::Stream::MIN)
    return bad("unknown stream");
  command.stream = static_cast<Stream>(file.stream());
  if (file.after())
    command.after.assign(file.after()->begin(), file.after()->end());
  bool isForGpu = std::holds_alternative<UploadCommand>(command.operation) ||
                  std::holds_alternative<DownloadCommand>(command.operation) ||
                  command.stream != Stream::Compute || !command.after.empty();
  if (plan.gpuTarget.empty() && isForGpu)
    return bad(nameOf(command), " on stream ", toString(command.stream),
               " after ", command.after.size(),
               " commands in a plan for a CPU, which has one stream");
  for (size_t i = 1; i < command.after.size(); ++i)
    if (command.after[i - 1] >= command.after[i])
      return bad("the commands that it comes after are not in order");
  // The last one that has been issued when this one is, in any run.
  size_t number = program.commands.size();
  size_t last = left > 0 ? number + left - 1 : number;
  for (uint32_t other : command.after)
    if (other > last || other == number)
      return bad("is to come after command ", other,
                 ", which has not been issued before");
  return absl::OkStatus();
}

absl::Status CommandReader::read(const fb::Command &file) {
  Command command;
  if (file.part() > fb::Part::MAX || file.part() < fb::Part::MIN)
    return bad("unknown part of the step");
  command.part = static_cast<Part>(file.part());
  if (file.source())
    command.source = file.source()->str();
  absl::Status status;
  if (const fb::Launch *launch = file.operation_as_Launch())
    status = readLaunch(*launch, command.operation.emplace<LaunchCommand>());
  else if (const fb::Gemm *gemm = file.operation_as_Gemm())
    status = readGemm(*gemm, command.operation.emplace<GemmCommand>());
  else if (const fb::CollectiveStart *start =
               file.operation_as_CollectiveStart())
    status = readCollective(
        *start, command.operation.emplace<CollectiveStartCommand>());
  else if (const fb::CollectiveWait *wait = file.operation_as_CollectiveWait())
    command.operation = CollectiveWaitCommand{wait->start()};
  else if (const fb::Copy *copy = file.operation_as_Copy())
    status = readCopy(*copy, command.operation.emplace<CopyCommand>());
  else if (const fb::Clear *clear = file.operation_as_Clear())
    status = readClear(*clear, command.operation.emplace<ClearCommand>());
  else if (const fb::Loop *loop = file.operation_as_Loop())
    status = readLoop(*loop, command.operation.emplace<LoopCommand>());
  else if (const fb::Upload *upload = file.operation_as_Upload())
    status = readUpload(*upload, command.operation.emplace<UploadCommand>());
  else if (const fb::Download *download = file.operation_as_Download())
    status =
        readDownload(*download, command.operation.emplace<DownloadCommand>());
  else
    status = bad("unknown operation");
  if (!status.ok())
    return status;
  if (status = readOrder(file, command); !status.ok())
    return status;
  if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
    runs = loop->runs;
    left = loop->commands;
  } else if (left > 0 && --left == 0) {
    runs = 1;
  }
  program.commands.push_back(std::move(command));
  return absl::OkStatus();
}

absl::Status shardc::rt::readCommands(const fb::Program &file,
                                      const PlanSpec &plan,
                                      ProgramSpec &program) {
  CommandReader reader(plan, program);
  for (const fb::Command *command : *file.commands())
    if (absl::Status s = reader.read(*command); !s.ok())
      return s;
  if (absl::Status s = reader.finish(); !s.ok())
    return s;
  if (absl::Status s = checkCollectives(plan, program); !s.ok())
    return s;
  return checkHappensBefore(plan, program).status();
}
