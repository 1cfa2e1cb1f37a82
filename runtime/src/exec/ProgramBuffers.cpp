//===- ProgramBuffers.cpp - Where a program's buffers are -----------------===//

#include "exec/ProgramBuffers.h"

#include <tuple>

using namespace shardc::rt;

char *ProgramBuffers::addressOn(int rank, int64_t device, uint32_t buffer,
                                int64_t run) const {
  if (messagePlaces)
    std::tie(rank, buffer) = messagePlaces->placeOf({rank, buffer});
  if (auto place = places.find(buffer); place != places.end())
    return place->second[device] + run * program().buffers[buffer].stride;
  return ranks[rank].memory +
         ranks[rank].layout.offsetOf(number, buffer, device, run);
}

void ProgramBuffers::setStrides(Step &step,
                                const std::vector<uint32_t> &buffers) const {
  bool moves = false;
  for (uint32_t buffer : buffers) {
    step.strides.push_back(program().buffers[buffer].stride);
    moves |= step.strides.back() > 0;
  }
  if (!moves)
    step.strides.clear();
}

void ProgramBuffers::bind(Step &step, const std::vector<Operand> &operands,
                          const std::vector<uint32_t> &buffers) const {
  step.operands = buffers.size();
  setStrides(step, buffers);
  for (uint32_t buffer : buffers) {
    Step::Access &access = step.accesses.emplace_back();
    for (const Operand &operand : operands)
      if (operand.buffer == buffer) {
        access.bytes = program().buffers[buffer].bytes;
        access.isWrite |= operand.isWrite;
      }
  }
  step.devices = devices().layout.devicesFor(number, operands);
  for (int64_t device : step.devices) {
    step.calls.push_back(
        {devices().contexts.data() + device * devices().contextStride,
         step.table.size()});
    for (uint32_t buffer : buffers)
      step.table.push_back(address(device, buffer));
  }
}
