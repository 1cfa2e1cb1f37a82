//===- LayerFit.cpp - The choice for layers that fits ---------------------===//

#include "shardc/Transforms/Kernels/LayerFit.h"

#include <algorithm>
#include <iterator>

using namespace shardc;

LayerFit::LayerFit(std::vector<ChainLayer> given, int64_t limit,
                   int64_t bytesOfAll)
    : layers(std::move(given)), limit(limit), bytesOfAll(bytesOfAll),
      all(enumerateChoices(layers, mostExact)), leastBytes(bytesOfAll) {
  beginPercent(0);
}

void LayerFit::beginPercent(size_t next) {
  percent = next;
  fitting = -1;
  triesLeast = false;
  proposed.clear();
  tooLarge =
      getModelPeak(layers, LayerChoices(layers.size(), LayerChoice::Keep),
                   percents[percent]);
  budget = tooLarge - (bytesOfAll - limit);
}

/// Draws the conclusions for the next budget.
void LayerFit::narrow(const LayerChoices &choices, int64_t bytes) {
  int64_t peak = getModelPeak(layers, choices, percents[percent]);
  if (bytes > limit)
    tooLarge = std::min(tooLarge, peak);
  else
    fitting = std::max(fitting, peak);
  budget = std::min(peak + limit - bytes, tooLarge - 1);
}

/// The choices for the least budget that has any; empty the second time.
LayerChoices LayerFit::proposeLeast() {
  if (triesLeast)
    return {};
  triesLeast = true;
  LayerChoices choices = chooseWithin(layers, tooLarge, percents[percent]);
  for (int64_t none = -1, some = tooLarge;
       !choices.empty() && none + 1 < some;) {
    int64_t middle = none + (some - none) / 2;
    LayerChoices found = chooseWithin(layers, middle, percents[percent]);
    if (found.empty()) {
      none = middle;
    } else {
      some = getModelPeak(layers, found, percents[percent]);
      choices = std::move(found);
    }
  }
  return choices;
}

/// The next choices by the model; empty at the end of a percentage.
LayerChoices LayerFit::propose() {
  if (proposed.size() >= mostTrials)
    return fitting < 0 ? proposeLeast() : LayerChoices();
  LayerChoices choices = chooseWithin(layers, budget, percents[percent]);
  if (choices.empty())
    return fitting < 0 ? proposeLeast() : LayerChoices();
  if (!proposed.count(choices) || fitting < 0)
    return choices;
  // Between a budget that fits and one that does not.
  budget = fitting + (tooLarge - fitting) / 2;
  return chooseWithin(layers, budget, percents[percent]);
}

std::optional<LayerChoices> LayerFit::getNext() {
  if (layers.empty())
    return std::nullopt;
  if (!all.empty()) {
    if (numTried == all.size())
      return std::nullopt;
    return all[numTried++];
  }
  while (true) {
    LayerChoices choices = propose();
    if (choices.empty() || !proposed.insert(choices).second) {
      if (percent + 1 == std::size(percents))
        return std::nullopt;
      beginPercent(percent + 1);
      continue;
    }
    auto known = measured.find(choices);
    if (known == measured.end())
      return choices;
    narrow(choices, known->second);
  }
}

void LayerFit::add(const LayerChoices &choices, int64_t bytes, double seconds) {
  measured[choices] = bytes;
  leastBytes = std::min(leastBytes, bytes);
  if (bytes <= limit && (best.empty() || seconds < bestSeconds)) {
    best = choices;
    bestSeconds = seconds;
  }
  narrow(choices, bytes);
}
