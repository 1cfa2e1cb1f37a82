//===- CollectiveKernels.cpp - Copies and reductions of boxes -------------===//

#include "backends/cuda/CollectiveKernels.h"

#include "backends/cuda/CollectivePtx.h"
#include "backends/cuda/PinnedMemory.h"

#include <algorithm>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

constexpr uint64_t threadsPerBlock = 256;
/// Several times what a GPU runs at once; a block has more than a unit a thread
/// where this is not enough.
constexpr uint64_t maxBlocks = 4096;

absl::Status BoxLaunch::issue(const Stream &stream) const {
  if (blocks == 0)
    return absl::OkStatus();
  CUdeviceptr entries = table.address(), numbers = blockEntries;
  uint32_t in = operands, out = results;
  void *pointers[] = {&entries, &numbers, &in, &out};
  const cuda::Context &context = stream.context();
  return context.check(
      context.driver().launchKernel(kernel, blocks, 1, 1, threadsPerBlock, 1, 1,
                                    0, stream.get(), pointers, nullptr),
      what);
}

absl::StatusOr<CollectiveKernels>
CollectiveKernels::load(const cuda::Context &context, absl::Duration deadline) {
  absl::StatusOr<Stream> uploads = Stream::create(context);
  if (!uploads.ok())
    return uploads.status();
  CollectiveKernels kernels(*std::move(uploads));
  absl::StatusOr<Module> module =
      Module::load(context, {collectivePtx()}, collectiveKernels(),
                   "the kernels of collectives");
  if (!module.ok())
    return module.status();
  kernels.module = *std::move(module);
  kernels.deadline = deadline;
  return kernels;
}

absl::StatusOr<BoxLaunch>
CollectiveKernels::prepareCopies(absl::Span<const BoxReduction> boxes) const {
  return prepare(copyKernel, "launching copies", 0, boxes);
}

absl::StatusOr<BoxLaunch> CollectiveKernels::prepareReductions(
    DType dtype, Reduction reduction,
    absl::Span<const BoxReduction> boxes) const {
  const std::string kernel = reduceKernel(dtype, reduction);
  if (kernel.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(toString(dtype), " cannot be summed"));
  for (const BoxReduction &box : boxes)
    if (box.operands.size() > maxReduceOperands)
      return absl::InvalidArgumentError(absl::StrCat(
          "a reduction over ", box.operands.size(),
          " virtual devices of one GPU; at most ", maxReduceOperands));
  return prepare(kernel, "launching reductions", byteSize(dtype), boxes);
}

absl::StatusOr<BoxLaunch>
CollectiveKernels::prepare(const std::string &kernel, const char *what,
                           uint64_t elementBytes,
                           absl::Span<const BoxReduction> boxes) const {
  BoxLaunch launch;
  const BoxTable table =
      makeBoxTable(boxes, elementBytes, threadsPerBlock, maxBlocks);
  if (table.entryOfBlock.empty())
    return launch;
  const cuda::Context &context = uploads.context();
  const uint64_t entryBytes = table.entries.size(),
                 blockBytes = table.entryOfBlock.size() * sizeof(uint32_t),
                 bytes = entryBytes + blockBytes;
  const char *purpose = "the boxes of a collective";
  absl::StatusOr<DeviceMemory> memory =
      DeviceMemory::allocate(context, bytes, purpose);
  if (!memory.ok())
    return memory.status();
  absl::StatusOr<PinnedMemory> pinned =
      PinnedMemory::allocate(context, bytes, purpose);
  if (!pinned.ok())
    return pinned.status();
  absl::StatusOr<Event> done = Event::create(context);
  if (!done.ok())
    return done.status();
  std::memcpy(pinned->data(), table.entries.data(), entryBytes);
  std::memcpy(pinned->data() + entryBytes, table.entryOfBlock.data(),
              blockBytes);
  if (absl::Status s = context.check(
          context.driver().memcpyHtoDAsync(memory->address(), pinned->data(),
                                           bytes, uploads.get()),
          "copying the boxes of a collective");
      !s.ok())
    return s;
  if (absl::Status s = done->record(uploads); !s.ok())
    return s;
  if (absl::Status s =
          done->wait(deadline, "copying the boxes of a collective");
      !s.ok())
    return s;
  const std::vector<std::string> names = collectiveKernels();
  launch.kernel = module.kernel(std::find(names.begin(), names.end(), kernel) -
                                names.begin());
  launch.what = what;
  launch.table = *std::move(memory);
  launch.blockEntries = launch.table.address() + entryBytes;
  launch.blocks = table.entryOfBlock.size();
  launch.operands = boxes[0].operands.size();
  launch.results = boxes[0].results.size();
  return launch;
}
