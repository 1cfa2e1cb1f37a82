//===- RankProperties.h - What all processes must share ---------*- C++ -*-===//
//
// Processes that run different programs give wrong numbers, or wait for each
// other forever. So they exchange what they have in common before they begin.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COMM_RANKPROPERTIES_H
#define SHARDC_RT_SRC_COMM_RANKPROPERTIES_H

#include "absl/status/status.h"
#include "absl/types/span.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// Something that is the same in all processes of a run.
struct RankProperty {
  /// "--seed" or "seed". Unique.
  std::string name;
  /// With its value, as errors show it: "--seed=3" or "seed 3".
  std::string text;
};

/// A property that a process does not share with rank 0.
struct RankDifference {
  int rank;
  std::string host; ///< Of `rank`.
  std::string name;
  /// There and on rank 0; "no --seed": it is not there.
  std::string text, textOfFirst;
};

/// The properties of this process, and its host, for the others.
std::string formatProperties(absl::Span<const RankProperty> properties);

/// Compares what `formatProperties` has made in the processes, by rank. Each
/// property that differs is named once, with the first rank that has another
/// one than rank 0.
std::vector<RankDifference> findDifferences(absl::Span<const std::string> all);

/// InvalidArgument names the differences; OK: there are none.
[[nodiscard]] absl::Status
toStatus(absl::Span<const RankDifference> differences);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COMM_RANKPROPERTIES_H
