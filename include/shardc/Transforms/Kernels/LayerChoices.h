//===- LayerChoices.h - What to keep of a chain of layers -------*- C++ -*-===//
//
// The search behind `--recompute=auto`, on numbers: a chain of layers, each of
// which keeps its values for the backward pass, or computes them again from
// what is kept in front of it. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_KERNELS_LAYERCHOICES_H
#define SHARDC_TRANSFORMS_KERNELS_LAYERCHOICES_H

#include <cstdint>
#include <string>
#include <vector>

namespace shardc {

/// A layer as the search sees it.
struct ChainLayer {
  /// Bytes of the value that it hands on.
  int64_t outputBytes = 0;
  /// Bytes of its other values that the backward pass needs.
  int64_t innerBytes = 0;
  /// Seconds to compute these again from its input.
  double repeatSeconds = 0;
  /// Seconds to compute its output again, too.
  double outputSeconds = 0;
  /// Whether its output can be computed again.
  bool canDropOutput = true;
};

/// The choice for one layer.
enum class LayerChoice : char {
  /// Its values are kept from the forward pass on.
  Keep = 'k',
  /// They are computed again from its input, which is kept.
  Repeat = 'r',
  /// They are computed again together with those of the layer before, whose
  /// output is dropped. That layer is repeated or joined as well.
  Join = 'j',
};
using LayerChoices = std::vector<LayerChoice>;

/// "krj": a letter for each layer.
std::string toString(const LayerChoices &choices);

/// Whether `choices` suit `layers`: of the same number, no layer joined that
/// cannot be.
bool areValid(const std::vector<ChainLayer> &layers,
              const LayerChoices &choices);

/// Seconds that `choices`, which are valid, cost.
double getSeconds(const std::vector<ChainLayer> &layers,
                  const LayerChoices &choices);

/// Bytes of values that are alive at once, by a model: those kept in front of
/// a group of layers that are repeated together, with `percent` of the values
/// of the group. Gradients, weights and the memory of ops do not count.
int64_t getModelPeak(const std::vector<ChainLayer> &layers,
                     const LayerChoices &choices, int64_t percent = 100);

/// All choices that are valid, if they are at most `most`, and otherwise none.
/// A layer without anything to repeat is never kept: it is repeated for free.
std::vector<LayerChoices>
enumerateChoices(const std::vector<ChainLayer> &layers, size_t most);

/// The valid choices of least seconds whose model peak is at most `budget`; of
/// the same time those that keep the fewest bytes. Empty if there are none, or
/// no layers. Exact by dynamic programming over the bytes kept, unless more
/// than 512 different sums of bytes are worth a look at one layer: then the
/// search drops some.
LayerChoices chooseWithin(const std::vector<ChainLayer> &layers, int64_t budget,
                          int64_t percent = 100);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_KERNELS_LAYERCHOICES_H
