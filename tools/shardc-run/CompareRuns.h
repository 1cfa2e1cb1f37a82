//===- CompareRuns.h - The distance between two runs ------------*- C++ -*-===//
//
// Pure functions on the results of runs of the same program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPARERUNS_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPARERUNS_H

#include "shardc-rt/Plan.h"
#include "shardc-rt/Trainer.h"

#include <map>
#include <string>
#include <vector>

namespace shardc::run {

/// Some steps of a run: the losses, and parameters and states after the last.
struct RunSegment {
  std::vector<double> losses;
  rt::ArrayMap state;
};

/// The references of relative differences.
struct Scales {
  /// The greatest loss of the run so far. A loss below a thousandth of it
  /// counts as that thousandth.
  double greatestLoss = 0;
  /// The scale of differences of a loss of this size.
  double of(double loss) const;
  /// Differences of parameters are relative to the root mean square of all, in
  /// place of the largest relative to the largest.
  bool byMeanSquare = false;
};

/// The distance between two segments that began in one state; also a limit of
/// it.
struct Distance {
  double loss = 0;       ///< Largest, relative to the expected loss.
  int64_t lossStep = 0;  ///< Of the segment, from 0.
  double parameters = 0; ///< Relative, as `Scales` says.
  std::string where;     ///< The parameter that differs most.
  double ofChange = 0;   ///< Root mean square, by that of the change of all
                         ///< parameters.
  /// Root mean square of the difference of each parameter and state.
  std::map<std::string, double> tensors;
  bool isBitEqual = true;

  /// The larger one of each number.
  void extend(const Distance &other, double factor);
};

/// The name of the first number of `distance` that is above its limit, or is
/// not a number; empty: all are within. Tensors without a limit may differ.
std::string findExcess(const Distance &distance, const Distance &limits);

/// The distance between `actual` and `expected`, both begun in `start`.
Distance compareSegments(const rt::Plan &plan, const rt::ArrayMap &start,
                         const RunSegment &expected, const RunSegment &actual,
                         const Scales &scales);

/// The root mean square of a tensor, and that of a change of it.
double rootMeanSquare(const rt::HostArray &array);
double rootMeanSquare(const rt::HostArray &from, const rt::HostArray &to);

/// `array` with each floating-point number changed by the relative `amount`, up
/// or down at random.
rt::HostArray moveByRounding(const rt::HostArray &array, double amount,
                             uint64_t seed);

/// `array` - (`moved` - `start`), in f64.
rt::HostArray takeBack(const rt::HostArray &array, const rt::HostArray &start,
                       const rt::HostArray &moved);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPARERUNS_H
