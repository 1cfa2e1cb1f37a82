//===- CommandReader.cpp - Reads and checks the commands of a program -----===//

#include "plan/CommandReader.h"

#include "plan/HappensBefore.h"
#include "plan/ReadPlan.h"

#include "shardc-rt/HostArray.h"

#include "absl/algorithm/container.h"

#include <algorithm>
#include <numeric>

using namespace shardc::rt;

/// A larger number of microbatches means a damaged file.
static constexpr int64_t maxRuns = int64_t(1) << 16;

absl::Status CommandReader::readAxes(const flatbuffers::Vector<uint16_t> *file,
                                     std::vector<int> &axes) const {
  if (!file)
    return absl::OkStatus();
  for (uint16_t axis : *file) {
    if (axis >= plan.mesh.axes().size() ||
        std::find(axes.begin(), axes.end(), axis) != axes.end())
      return bad("axis ", axis, " is not one of the mesh or stands twice");
    axes.push_back(axis);
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Launches and GEMMs
//===----------------------------------------------------------------------===//

absl::Status CommandReader::readLaunch(const fb::Launch &file,
                                       LaunchCommand &launch) const {
  launch.kernel = file.kernel();
  launch.extent = file.extent();
  launch.grain = file.grain();
  launch.writes = file.writes();
  launch.threads = file.threads();
  launch.matmulFlops = file.matmul_flops();
  if (launch.kernel >= plan.kernels.size())
    return bad("kernel ", launch.kernel, " of ", plan.kernels.size());
  if (launch.extent < 0 || launch.grain < 1)
    return bad("extent ", launch.extent, " in grains of ", launch.grain);
  // A launch of a GPU has whole warps, within the limits of a grid and a block.
  bool isGrid = launch.threads % 32 == 0 && launch.threads >= 32 &&
                launch.threads <= 1024 && launch.extent >= 1 &&
                launch.extent < int64_t(1) << 31;
  if (plan.gpuTarget.empty() ? launch.threads != 0 : !isGrid)
    return bad("a kernel for ",
               plan.gpuTarget.empty() ? "the CPU" : plan.gpuTarget, " has ",
               launch.extent, " blocks of ", launch.threads, " threads");
  for (uint32_t buffer : *file.buffers()) {
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
    launch.buffers.push_back(buffer);
  }
  if (launch.writes > launch.buffers.size())
    return bad("writes ", launch.writes, " of ", launch.buffers.size(),
               " buffers");
  if (absl::Status s = readParts(file, launch); !s.ok())
    return s;
  return readGroupKernel(file, launch);
}

absl::Status CommandReader::readGroupKernel(const fb::Launch &file,
                                            LaunchCommand &launch) const {
  launch.groupKernel = file.group_kernel();
  launch.groupDevices = file.group_devices();
  launch.groupShared = file.group_shared();
  if (launch.groupDevices == 0) {
    if (launch.groupShared >= 0)
      return bad("no kernel for the devices that share buffer ",
                 launch.groupShared);
    return absl::OkStatus();
  }
  if (launch.groupKernel >= plan.kernels.size())
    return bad("kernel ", launch.groupKernel, " of ", plan.kernels.size(),
               " for a group");
  if (launch.groupDevices < 2 || launch.groupDevices > plan.mesh.numDevices())
    return bad("a kernel for ", launch.groupDevices, " of ",
               plan.mesh.numDevices(), " devices");
  if (!plan.gpuTarget.empty() || launch.parts.size() != 1 ||
      !launch.parts[0].coordinateAxes.empty())
    return bad("a kernel for a group whose launch has not one part without "
               "coordinates, on a CPU");
  const int64_t reads = launch.buffers.size() - launch.writes;
  if (!launch.canAddUp()) {
    if (launch.groupShared >= reads)
      return bad("devices of a group share buffer ", launch.groupShared, " of ",
                 reads, " that are read");
    return absl::OkStatus();
  }
  if (launch.writes != 1 ||
      program.buffers[launch.buffers.back()].dtype != DType::F32)
    return bad("a kernel adds up results of a launch that has not one, of f32");
  return absl::OkStatus();
}

absl::Status CommandReader::readParts(const fb::Launch &file,
                                      LaunchCommand &launch) const {
  if (!file.parts()) {
    LaunchPart &whole = launch.parts.emplace_back();
    whole.extent = launch.extent;
    whole.buffers.resize(launch.buffers.size());
    std::iota(whole.buffers.begin(), whole.buffers.end(), 0);
    whole.coordinateAxes.resize(plan.mesh.axes().size());
    std::iota(whole.coordinateAxes.begin(), whole.coordinateAxes.end(), 0);
    return absl::OkStatus();
  }
  int64_t left = launch.extent;
  for (const fb::LaunchPart *entry : *file.parts()) {
    LaunchPart &part = launch.parts.emplace_back();
    part.extent = entry->extent();
    left -= part.extent;
    if (part.extent < 0 || left < 0 ||
        (left > 0 && part.extent % launch.grain != 0))
      return bad("a part of ", part.extent, " iterations out of ",
                 launch.extent, " in grains of ", launch.grain);
    if (entry->buffers())
      part.buffers.assign(entry->buffers()->begin(), entry->buffers()->end());
    for (uint32_t position : part.buffers)
      if (position >= launch.buffers.size())
        return bad("a part touches buffer ", position, " of ",
                   launch.buffers.size());
    if (auto *bytes = entry->bytes_per_iteration())
      part.bytesPerIteration.assign(bytes->begin(), bytes->end());
    if (!part.bytesPerIteration.empty() &&
        part.bytesPerIteration.size() != part.buffers.size())
      return bad("a part says the bytes of an iteration for ",
                 part.bytesPerIteration.size(), " of ", part.buffers.size(),
                 " buffers");
    // Those of all iterations are the buffer.
    for (size_t i = 0; i < part.bytesPerIteration.size(); ++i) {
      const uint64_t each = part.bytesPerIteration[i],
                     bytes =
                         program.buffers[launch.buffers[part.buffers[i]]].bytes;
      if (each > 0 && (bytes == 0 || (bytes - 1) / each + 1 !=
                                         static_cast<uint64_t>(part.extent)))
        return bad(part.extent, " iterations of a part with ", each,
                   " bytes each of a buffer of ", bytes);
    }
    if (absl::Status s =
            readAxes(entry->coordinate_axes(), part.coordinateAxes);
        !s.ok())
      return s;
  }
  if (left > 0)
    return bad("parts leave out ", left, " of ", launch.extent, " iterations");
  return absl::OkStatus();
}

absl::Status CommandReader::readGemm(const fb::Gemm &file,
                                     GemmCommand &gemm) const {
  gemm = {file.a(),
          file.b(),
          file.c(),
          file.bias(),
          file.batch(),
          file.m(),
          file.n(),
          file.k(),
          file.transpose_a(),
          file.transpose_b(),
          file.accumulate(),
          static_cast<Activation>(file.activation()),
          static_cast<Precision>(file.precision()),
          file.column_sums(),
          static_cast<Summed>(file.column_sums_of())};
  if (file.activation() > fb::Activation::MAX ||
      file.activation() < fb::Activation::MIN)
    return bad("unknown activation");
  if (file.precision() > fb::Precision::MAX ||
      file.precision() < fb::Precision::MIN)
    return bad("unknown precision");
  if (file.column_sums_of() > fb::Summed::MAX ||
      file.column_sums_of() < fb::Summed::MIN)
    return bad("unknown operand whose columns are summed");
  constexpr int64_t limit = int64_t(1) << 31;
  for (int64_t size : {gemm.batch, gemm.m, gemm.n, gemm.k})
    if (size < 0 || size >= limit)
      return bad("GEMM of size ", size);
  for (uint32_t buffer : {gemm.a, gemm.b, gemm.c})
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
  auto elements = [&](uint32_t buffer) {
    return numElements(program.buffers[buffer].shape);
  };
  auto is = [&](uint32_t buffer, int64_t batch, int64_t rows, int64_t columns) {
    int64_t count = elements(buffer);
    return rows == 0 || columns == 0 || batch == 0
               ? count == 0
               : count / rows / columns == batch &&
                     count % (rows * columns) == 0;
  };
  if (!is(gemm.a, gemm.batch, gemm.m, gemm.k) ||
      !is(gemm.b, gemm.batch, gemm.k, gemm.n) ||
      !is(gemm.c, gemm.batch, gemm.m, gemm.n))
    return bad("the buffers of a GEMM of m=", gemm.m, " n=", gemm.n,
               " k=", gemm.k, " batch=", gemm.batch, " have other sizes");
  auto [factors, result] = program.typesOf(gemm);
  bool isHalf = factors == DType::BF16;
  if ((factors != DType::F32 && !isHalf) ||
      program.buffers[gemm.b].dtype != factors ||
      (result != factors && !(isHalf && result == DType::F32)))
    return bad("a GEMM needs factors of one type, f32 or bf16, and a "
               "result of that type or of f32");
  if (gemm.bias >= 0) {
    if (absl::Status s = checkBuffer(gemm.bias); !s.ok())
      return s;
    const BufferSpec &bias = program.buffers[gemm.bias];
    if (elements(gemm.bias) != gemm.n || bias.dtype != result)
      return bad("the bias is ", describe(bias.dtype, bias.shape),
                 ", expected ", describe(result, {gemm.n}));
  }
  if (absl::Status s = checkColumnSums(gemm); !s.ok())
    return s;
  if ((overlap(gemm.a, gemm.c) || overlap(gemm.b, gemm.c)) &&
      elements(gemm.c) != 0)
    return bad("the result of a GEMM overlaps an operand");
  return absl::OkStatus();
}

absl::Status CommandReader::checkColumnSums(const GemmCommand &gemm) const {
  if (gemm.columnSums < 0)
    return absl::OkStatus();
  uint32_t buffer = gemm.columnSums;
  if (absl::Status s = checkBuffer(buffer); !s.ok())
    return s;
  if (gemm.batch != 1 || gemm.bias >= 0 || gemm.activation != Activation::None)
    return bad("sums of columns need one GEMM without bias and activation");
  if (gemm.columnSumsOf == Summed::A ? !gemm.transposeA : gemm.transposeB)
    return bad("the rows of the factor whose columns are summed are not along "
               "k");
  const BufferSpec &sums = program.buffers[buffer];
  DType result = program.typesOf(gemm).result;
  int64_t columns = gemm.numColumnSums();
  if (numElements(sums.shape) != columns || sums.dtype != result)
    return bad("the sums of columns are ", describe(sums.dtype, sums.shape),
               ", expected ", describe(result, {columns}));
  if (columns == 0)
    return absl::OkStatus();
  for (uint32_t other : {gemm.a, gemm.b, gemm.c})
    if (overlap(buffer, other))
      return bad("the sums of columns overlap a matrix of the GEMM");
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

absl::Status CommandReader::checkItem(const CollectiveStartCommand &collective,
                                      const CollectiveItem &item) const {
  for (uint32_t buffer : {item.in, item.out})
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
  const BufferSpec &in = program.buffers[item.in];
  const BufferSpec &out = program.buffers[item.out];
  int64_t rank = in.shape.size();
  if (in.dtype != out.dtype || in.shape.size() != out.shape.size())
    return bad("a collective changes the element type or the rank");
  bool reduces = collective.kind == CollectiveKind::AllReduce ||
                 collective.kind == CollectiveKind::ReduceScatter;
  if (reduces && in.dtype == DType::Bool &&
      collective.reduction == Reduction::Sum)
    return bad("a sum of booleans");
  bool inPlace =
      collective.kind == CollectiveKind::AllReduce && in.offset == out.offset;
  if (!inPlace && overlap(item.in, item.out))
    return bad("a collective's result overlaps its operand");

  // The required shape of the result, dimension by dimension.
  int64_t shards = plan.mesh.numShards(collective.axes);
  auto ceilDiv = [&](int64_t size) { return (size + shards - 1) / shards; };
  auto inRange = [&](int64_t dim) { return dim >= 0 && dim < rank; };
  bool sound = true;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t from = in.shape[dim], to = out.shape[dim];
    bool gathers = (collective.kind == CollectiveKind::AllGather ||
                    collective.kind == CollectiveKind::AllToAll) &&
                   dim == item.dim;
    bool scatters =
        (collective.kind == CollectiveKind::ReduceScatter && dim == item.dim) ||
        (collective.kind == CollectiveKind::AllToAll && dim == item.splitDim);
    sound &= gathers    ? from == ceilDiv(to)
             : scatters ? to == ceilDiv(from)
                        : from == to;
  }
  if (collective.kind == CollectiveKind::AllGather ||
      collective.kind == CollectiveKind::ReduceScatter)
    sound &= inRange(item.dim);
  if (collective.kind == CollectiveKind::AllToAll)
    sound &= inRange(item.dim) && inRange(item.splitDim) &&
             item.dim != item.splitDim;
  if (!sound)
    return bad(toString(collective.kind), " over ", shards, " devices of ",
               describe(in.dtype, in.shape), " does not give ",
               describe(out.dtype, out.shape));
  return absl::OkStatus();
}

absl::Status
CommandReader::readCollective(const fb::CollectiveStart &file,
                              CollectiveStartCommand &collective) const {
  if (file.kind() > fb::CollectiveKind::CollectivePermute ||
      file.kind() < fb::CollectiveKind::MIN ||
      file.reduction() > fb::Reduction::MAX ||
      file.reduction() < fb::Reduction::MIN)
    return bad("unknown collective");
  collective.kind = static_cast<CollectiveKind>(file.kind());
  collective.reduction = static_cast<Reduction>(file.reduction());
  collective.report = file.report();
  if (!program.collectives.empty() &&
      collective.report >= program.collectives.size())
    return bad("line ", collective.report,
               " of a communication report that has ",
               program.collectives.size());
  if (absl::Status s = readAxes(file.axes(), collective.axes); !s.ok())
    return s;
  if (absl::Status s = readAxes(file.target_axes(), collective.targetAxes);
      !s.ok())
    return s;
  if (collective.kind != CollectiveKind::AllReduce &&
      absl::c_linear_search(collective.axes, plan.rankAxis))
    return bad(toString(collective.kind),
               " over the axis of the pipeline; expected an all_reduce");
  if (collective.kind == CollectiveKind::CollectivePermute &&
      !std::is_permutation(collective.axes.begin(), collective.axes.end(),
                           collective.targetAxes.begin(),
                           collective.targetAxes.end()))
    return bad("the target axes of a permute are not those it is over");
  if (file.sources())
    collective.sources.assign(file.sources()->begin(), file.sources()->end());
  if (!collective.sources.empty()) {
    int64_t members = plan.mesh.numShards(collective.axes);
    std::vector<int> sorted = collective.sources;
    absl::c_sort(sorted);
    bool isPermutation =
        sorted.size() == static_cast<size_t>(members) && sorted.front() == 0 &&
        sorted.back() == members - 1 &&
        std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (collective.kind != CollectiveKind::CollectivePermute || !isPermutation)
      return bad("sources of ", toString(collective.kind), " over ", members,
                 " devices are no permutation of them");
  }
  for (const fb::CollectiveItem *entry : *file.items()) {
    CollectiveItem item{entry->in(), entry->out(), entry->dim(),
                        entry->split_dim()};
    if (absl::Status s = checkItem(collective, item); !s.ok())
      return s;
    collective.items.push_back(item);
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Copies, loops and transfers
//===----------------------------------------------------------------------===//

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
  if (plan.rankAxis >= 0)
    return bad("a loop in a plan with a pipeline");
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
  size_t count =
      plan.rankAxis < 0 ? plan.tensors.size() : plan.tensorNumbers.size();
  if (file.tensor() >= count)
    return bad("tensor ", file.tensor(), " of ", count);
  int64_t number = plan.numberOf(file.tensor());
  if (number < 0)
    return bad("tensor ", file.tensor(), " is on other pipeline ranks");
  upload.tensor = number;
  const TensorSpec &tensor = plan.tensors[upload.tensor];
  if (!isFed(tensor.role))
    return bad("tensor \"", tensor.name, "\" is a ", toString(tensor.role),
               ", which the host does not give");
  if (program.inputs && !absl::c_linear_search(*program.inputs, file.tensor()))
    return bad("tensor \"", tensor.name, "\" is none that the program takes");
  return absl::OkStatus();
}

absl::Status CommandReader::readDownload(const fb::Download &file,
                                         DownloadCommand &download) const {
  download = {file.result()};
  if (download.result >= program.results.size())
    return bad("result ", download.result, " of ", program.results.size());
  return checkBuffer(program.results[download.result].buffer);
}

/// The buffers of a send or a receive.
absl::Status
CommandReader::readTransfer(const flatbuffers::Vector<uint32_t> &file,
                            std::vector<uint32_t> &buffers) const {
  if (plan.rankAxis < 0)
    return bad("a transfer between ranks in a plan without a pipeline");
  buffers.assign(file.begin(), file.end());
  if (buffers.empty())
    return bad("a transfer of no buffers");
  for (uint32_t buffer : buffers)
    if (absl::Status s = checkBuffer(buffer); !s.ok())
      return s;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Any command
//===----------------------------------------------------------------------===//

/// The task that it belongs to. Tasks run one after the other, but starts and
/// waits may be anywhere.
absl::Status CommandReader::readTask(const fb::Command &file,
                                     Command &command) {
  command.task = file.task();
  int64_t count = program.tasks.size();
  if (command.task < -1 || command.task >= count)
    return bad("task ", command.task, " of ", count);
  if (command.task < 0 || isCommunication(command) ||
      std::holds_alternative<CollectiveWaitCommand>(command.operation))
    return absl::OkStatus();
  if (command.task < task)
    return bad("belongs to task ", command.task, " after one of task ", task);
  task = command.task;
  return absl::OkStatus();
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
  else if (const fb::Send *send = file.operation_as_Send()) {
    SendCommand &own = command.operation.emplace<SendCommand>();
    own.peer = send->peer(), own.message = send->message();
    own.report = send->report();
    if (!program.collectives.empty() &&
        send->report() >= program.collectives.size())
      return bad("line ", send->report(),
                 " of a communication report that has ",
                 program.collectives.size());
    status = readTransfer(*send->buffers(), own.buffers);
  } else if (const fb::Receive *receive = file.operation_as_Receive()) {
    ReceiveCommand &own = command.operation.emplace<ReceiveCommand>();
    own.peer = receive->peer(), own.message = receive->message();
    status = readTransfer(*receive->buffers(), own.buffers);
  } else
    status = bad("unknown operation");
  if (!status.ok())
    return status;
  if (status = readTask(file, command); !status.ok())
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
