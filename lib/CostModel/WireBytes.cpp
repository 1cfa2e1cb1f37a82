//===- WireBytes.cpp - Wire bytes of collectives --------------------------===//

#include "shardc/CostModel/WireBytes.h"

#include "shardc/Sharding/Layout.h"

using namespace shardc;

int64_t shardc::getWireBytes(CollectiveKind kind, int64_t bytes,
                             int64_t groupSize) {
  if (groupSize <= 1)
    return 0;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return ceilDiv(2 * (groupSize - 1) * bytes, groupSize);
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return ceilDiv((groupSize - 1) * bytes, groupSize);
  case CollectiveKind::CollectivePermute:
  case CollectiveKind::Send:
    return bytes;
  }
  return 0;
}
