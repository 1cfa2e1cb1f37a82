//===- LayerFit.h - The choice for layers that fits -------------*- C++ -*-===//
//
// The outer search behind `--recompute=auto`. It proposes choices, whose memory
// the caller measures by compiling them. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_KERNELS_LAYERFIT_H
#define SHARDC_TRANSFORMS_KERNELS_LAYERFIT_H

#include "shardc/Transforms/Kernels/LayerChoices.h"

#include <limits>
#include <map>
#include <optional>
#include <set>

namespace shardc {

/// Finds the choices of least time within `limit` bytes.
///
/// If there are at most `mostExact` choices, all of them are measured: the
/// result is exact. Otherwise a model of the memory proposes one for a budget
/// (`chooseWithin`). What the model is off by is corrected by the measurement
/// of the choice proposed before; budgets are narrowed down until the choice no
/// longer changes, at most `mostTrials` times. This is done for several
/// percentages of the memory of layers that are repeated together.
class LayerFit {
public:
  static constexpr size_t mostExact = 128;
  static constexpr size_t mostTrials = 6;
  static constexpr int64_t percents[] = {100, 50, 25, 200};

  /// `bytesOfAll` is the memory if all values are kept; it exceeds `limit`.
  LayerFit(std::vector<ChainLayer> layers, int64_t limit, int64_t bytesOfAll);

  /// The next choices to measure; nullopt at the end.
  std::optional<LayerChoices> getNext();

  /// Takes the measurement of `choices`: the bytes of the plan, and the seconds
  /// of its step.
  void add(const LayerChoices &choices, int64_t bytes, double seconds);

  /// The best choices measured that fit; null if there are none.
  const LayerChoices *getBest() const { return best.empty() ? nullptr : &best; }
  /// The fewest bytes measured.
  int64_t getLeastBytes() const { return leastBytes; }

private:
  void beginPercent(size_t next);
  void narrow(const LayerChoices &choices, int64_t bytes);
  LayerChoices proposeLeast();
  LayerChoices propose();

  std::vector<ChainLayer> layers;
  int64_t limit, bytesOfAll;
  /// If the search is exact.
  std::vector<LayerChoices> all;
  size_t numTried = 0;
  /// By choices their bytes.
  std::map<LayerChoices, int64_t> measured;
  LayerChoices best;
  double bestSeconds = std::numeric_limits<double>::infinity();
  int64_t leastBytes;

  // Of the present percentage.
  size_t percent = 0;
  /// The greatest budget of the model that fits (-1: none), the least one that
  /// does not, and the next one.
  int64_t fitting = -1, tooLarge = 0, budget = 0;
  bool triesLeast = false;
  std::set<LayerChoices> proposed;
};

} // namespace shardc

#endif // SHARDC_TRANSFORMS_KERNELS_LAYERFIT_H
