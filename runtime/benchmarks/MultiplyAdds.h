//===- MultiplyAdds.h - Multiply-adds in registers --------------*- C++ -*-===//
//
// What a core can compute at most: independent sums in registers, as many as
// hide the latency of two units.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_BENCHMARKS_MULTIPLYADDS_H
#define SHARDC_RT_BENCHMARKS_MULTIPLYADDS_H

#include <vector>

namespace shardc::rt::bench {

/// Multiply-adds with vectors of one width.
struct MultiplyAdds {
  const char *features; ///< Of the processor, such as "avx2".
  double flops;         ///< Of one run.
  /// Runs them on the calling thread; returns a sum, for none to be left out.
  float (*run)();
};

/// Those that this processor has, by width, ascending.
std::vector<MultiplyAdds> multiplyAdds();

} // namespace shardc::rt::bench

#endif // SHARDC_RT_BENCHMARKS_MULTIPLYADDS_H
