//===- CollectivePrices.h - What a planner minimises -----------*- C++ -*-===//
//
// The price of moving bytes, in the unit of the objective: bytes on the wire or
// seconds. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_COLLECTIVEPRICES_H
#define SHARDC_ANALYSIS_COLLECTIVEPRICES_H

#include "shardc/Analysis/Layout.h"
#include "shardc/Analysis/WireBytes.h"

namespace shardc {

/// Prices of collectives on one mesh.
class CollectivePrices {
public:
  /// Wire bytes per device.
  CollectivePrices() = default;

  /// What `bytes` on the wire cost for a collective over `axes`.
  double getWire(AxisSet axes, double bytes) const { return bytes; }
  /// What it costs to start a collective.
  double getLatency(CollectiveKind kind, AxisSet axes) const { return 0; }
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_COLLECTIVEPRICES_H
