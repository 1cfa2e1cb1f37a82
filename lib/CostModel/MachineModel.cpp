//===- MachineModel.cpp - Machines as numbers -----------------------------===//

#include "shardc/CostModel/MachineModel.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace llvm;
using namespace shardc;

const Link &Machine::getLink(StringRef axis) const {
  for (const auto &[name, link] : axisLinks)
    if (name == axis)
      return link;
  return defaultLink;
}

void Machine::shareAmong(int64_t devices) {
  if (!isShared)
    return;
  for (double &rate : flopsPerSecond)
    rate /= devices;
  memoryBytes /= devices;
  memoryBytesPerSecond /= devices;
  defaultLink.bytesPerSecond /= devices;
  for (auto &axis : axisLinks)
    axis.second.bytesPerSecond /= devices;
}

double shardc::getWireSeconds(const Machine &machine, int64_t wireBytes,
                              ArrayRef<LinkAxis> axes) {
  double secondsPerByte = 0;
  for (const LinkAxis &axis : axes)
    if (axis.size > 1)
      secondsPerByte = std::max(secondsPerByte,
                                1 / machine.getLink(axis.name).bytesPerSecond);
  return wireBytes * secondsPerByte;
}

static int64_t getSteps(CollectiveKind kind, int64_t size) {
  if (size <= 1)
    return 0;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return 2 * Log2_64_Ceil(size);
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    return Log2_64_Ceil(size);
  case CollectiveKind::AllToAll:
    return size - 1;
  case CollectiveKind::CollectivePermute:
  case CollectiveKind::Send:
    return 1;
  }
  return 0;
}

double shardc::getLatencySeconds(const Machine &machine, CollectiveKind kind,
                                 ArrayRef<LinkAxis> axes) {
  double seconds = 0;
  for (const LinkAxis &axis : axes)
    seconds +=
        getSteps(kind, axis.size) * machine.getLink(axis.name).latencySeconds;
  return seconds;
}

double shardc::getCollectiveSeconds(const Machine &machine, CollectiveKind kind,
                                    int64_t wireBytes,
                                    ArrayRef<LinkAxis> axes) {
  return getLatencySeconds(machine, kind, axes) +
         getWireSeconds(machine, wireBytes, axes);
}
