//===- InputsInPlace.cpp - Inputs that need no copy -----------------------===//

#include "exec/InputsInPlace.h"

#include "exec/Shards.h"
#include "plan/Accesses.h"

#include "absl/algorithm/container.h"

using namespace shardc::rt;

/// Whether a shard is a block of whole rows of the global array.
static bool isBlockOfRows(const Shard &shard,
                          absl::Span<const int64_t> global) {
  for (size_t dim = 0; dim < global.size(); ++dim)
    if (shard.valid[dim] != shard.local[dim] ||
        (dim > 0 && shard.local[dim] != global[dim]))
      return false;
  return true;
}

/// The buffers that are a tensor, or rows of it. Empty if any of them is used
/// in another way than to be read by steps that are calls.
static std::vector<uint32_t> readersOf(const ProgramBuffers &buffers,
                                       size_t tensor) {
  const ProgramSpec &program = buffers.program();
  const ArenaLayout &layout = buffers.devices().layout;
  const TensorSpec &spec = buffers.devices().plan.tensors[tensor];
  const ByteRange own{spec.offset, spec.offset + spec.bytes};
  const uint32_t set = layout.aliasSetOfTensor(tensor);
  auto isOfTensor = [&](uint32_t buffer) {
    return layout.aliasSetOf(buffers.number, buffer) == set;
  };
  for (const ResultSpec &result : program.results)
    if (isOfTensor(result.buffer))
      return {};
  for (const Command &command : program.commands) {
    const bool isMadeOfCalls =
        std::holds_alternative<LaunchCommand>(command.operation) ||
        std::holds_alternative<GemmCommand>(command.operation) ||
        std::holds_alternative<CopyCommand>(command.operation);
    for (const Operand &operand : operandsOf(program, command))
      if (isOfTensor(operand.buffer) && (operand.isWrite || !isMadeOfCalls))
        return {};
  }
  const std::vector<BufferUse> uses = usesOf(program);
  std::vector<uint32_t> found;
  for (uint32_t buffer = 0; buffer < uses.size(); ++buffer) {
    if (!uses[buffer].isUsed() || !isOfTensor(buffer))
      continue;
    const ByteRange bytes = uses[buffer].bytes;
    if (bytes.begin < own.begin || bytes.end > own.end)
      return {};
    found.push_back(buffer);
  }
  return found;
}

void shardc::rt::placeInputs(ProgramBuffers &buffers, PreparedSteps &prepared) {
  const DeviceSet &devices = buffers.devices();
  const PlanSpec &plan = devices.plan;
  const DeviceRange local = devices.layout.devices();
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const TensorSpec &spec = plan.tensors[tensor];
    if (!plan.takes(buffers.number, tensor))
      continue;
    std::vector<Shard> shards;
    for (int64_t device = local.first; device < local.last; ++device)
      shards.push_back(shardOf(plan.mesh, spec.sharding, spec.shape, device));
    if (!absl::c_all_of(shards, [&](const Shard &shard) {
          return isBlockOfRows(shard, spec.shape);
        }))
      continue;
    const std::vector<uint32_t> readers = readersOf(buffers, tensor);
    const uint64_t bytes = numElements(spec.shape) * byteSize(spec.dtype);
    PreparedSteps::Input input{tensor, bytes};
    if (readers.empty() || bytes == 0 || !input.memory.allocate(bytes))
      continue;
    input.array = input.memory.get();
    for (uint32_t buffer : readers) {
      std::vector<char *> &places = buffers.places[buffer];
      places.resize(plan.mesh.numDevices());
      for (int64_t device = local.first; device < local.last; ++device) {
        const std::vector<int64_t> &start = shards[device - local.first].start;
        const int64_t row = spec.shape.empty() ? 0 : start[0];
        const int64_t rows = spec.shape.empty() ? 1 : spec.shape[0];
        places[device] = input.memory.get() + row * (bytes / rows) +
                         plan.programs[buffers.number].buffers[buffer].offset -
                         spec.offset;
      }
    }
    prepared.inputs.push_back(std::move(input));
  }
}

void shardc::rt::findInputAddresses(PreparedSteps &prepared) {
  for (PreparedSteps::Input &input : prepared.inputs)
    for (size_t step = 0; step < prepared.steps.size(); ++step) {
      const std::vector<void *> &table = prepared.steps[step].table;
      for (size_t entry = 0; entry < table.size(); ++entry) {
        // As numbers: most addresses are of other memory.
        const uintptr_t offset = reinterpret_cast<uintptr_t>(table[entry]) -
                                 reinterpret_cast<uintptr_t>(input.array);
        if (offset < input.bytes)
          input.places.push_back({step, entry, offset});
      }
    }
}
