//===- LayerChoices.cpp - What to keep of a chain of layers ---------------===//

#include "shardc/Transforms/Kernels/LayerChoices.h"

#include <algorithm>

using namespace shardc;

/// The most states of the search at one layer.
static constexpr size_t mostStates = 512;

/// Whether repeating the layer costs nothing because nothing is repeated.
static bool isFree(const ChainLayer &layer) {
  return layer.repeatSeconds == 0 && layer.innerBytes == 0;
}

std::string shardc::toString(const LayerChoices &choices) {
  std::string text;
  for (LayerChoice choice : choices)
    text += static_cast<char>(choice);
  return text;
}

bool shardc::areValid(const std::vector<ChainLayer> &layers,
                      const LayerChoices &choices) {
  if (choices.size() != layers.size())
    return false;
  for (size_t index = 0; index < choices.size(); ++index)
    if (choices[index] == LayerChoice::Join &&
        (index == 0 || choices[index - 1] == LayerChoice::Keep ||
         !layers[index - 1].canDropOutput))
      return false;
  return true;
}

double shardc::getSeconds(const std::vector<ChainLayer> &layers,
                          const LayerChoices &choices) {
  double seconds = 0;
  for (size_t index = 0; index < choices.size(); ++index) {
    if (choices[index] != LayerChoice::Keep)
      seconds += layers[index].repeatSeconds;
    if (choices[index] == LayerChoice::Join)
      seconds += layers[index - 1].outputSeconds;
  }
  return seconds;
}

int64_t shardc::getModelPeak(const std::vector<ChainLayer> &layers,
                             const LayerChoices &choices, int64_t percent) {
  int64_t peak = 0, kept = 0, group = 0;
  for (size_t index = 0; index < choices.size(); ++index) {
    const ChainLayer &layer = layers[index];
    bool isLast =
        index + 1 == choices.size() || choices[index + 1] != LayerChoice::Join;
    if (choices[index] == LayerChoice::Keep)
      kept += layer.innerBytes;
    else
      group += layer.innerBytes;
    if (!isLast) {
      group += layer.outputBytes;
      continue;
    }
    kept += layer.outputBytes;
    peak = std::max(peak, kept + group * percent / 100);
    group = 0;
  }
  return peak;
}

std::vector<LayerChoices>
shardc::enumerateChoices(const std::vector<ChainLayer> &layers, size_t most) {
  std::vector<LayerChoices> all = {{}};
  for (size_t index = 0; index < layers.size(); ++index) {
    std::vector<LayerChoices> longer;
    for (const LayerChoices &choices : all)
      for (LayerChoice choice :
           {LayerChoice::Keep, LayerChoice::Repeat, LayerChoice::Join}) {
        if (choice == LayerChoice::Keep && isFree(layers[index]))
          continue;
        if (choice == LayerChoice::Join &&
            (index == 0 || choices.back() == LayerChoice::Keep ||
             !layers[index - 1].canDropOutput))
          continue;
        longer.push_back(choices);
        longer.back().push_back(choice);
      }
    if (longer.size() > most)
      return {};
    all = std::move(longer);
  }
  return all;
}

namespace {

/// A way to arrive behind a layer whose output is kept.
struct State {
  int64_t kept = 0;
  double seconds = 0;
  /// The layer that the last group begins with, the state in front of it, and
  /// whether the group is one layer that is kept.
  size_t first = 0, previous = 0;
  bool isKept = false;
};

} // namespace

/// Keeps the states that no other one is as good as in both respects.
static void prune(std::vector<State> &states) {
  std::stable_sort(states.begin(), states.end(),
                   [](const State &lhs, const State &rhs) {
                     return std::pair(lhs.kept, lhs.seconds) <
                            std::pair(rhs.kept, rhs.seconds);
                   });
  std::vector<State> front;
  for (const State &state : states)
    if (front.empty() || state.seconds < front.back().seconds)
      front.push_back(state);
  // Of too many, those at equal distances.
  if (front.size() > mostStates) {
    std::vector<State> some;
    for (size_t index = 0; index < mostStates; ++index)
      some.push_back(front[index * (front.size() - 1) / (mostStates - 1)]);
    front = std::move(some);
  }
  states = std::move(front);
}

LayerChoices shardc::chooseWithin(const std::vector<ChainLayer> &layers,
                                  int64_t budget, int64_t percent) {
  std::vector<std::vector<State>> states(layers.size() + 1);
  states[0].push_back({});
  for (size_t end = 1; end <= layers.size(); ++end) {
    const ChainLayer &last = layers[end - 1];
    auto add = [&](size_t first, int64_t keptInside, int64_t repeated,
                   double seconds, bool isKept) {
      for (size_t index = 0; index < states[first].size(); ++index) {
        const State &before = states[first][index];
        int64_t kept = before.kept + keptInside + last.outputBytes;
        if (kept + repeated * percent / 100 <= budget)
          states[end].push_back(
              {kept, before.seconds + seconds, first, index, isKept});
      }
    };
    if (!isFree(last))
      add(end - 1, last.innerBytes, 0, 0, true);
    int64_t repeated = 0;
    double seconds = 0;
    for (size_t first = end; first-- > 0;) {
      repeated += layers[first].innerBytes;
      seconds += layers[first].repeatSeconds;
      if (repeated * percent / 100 > budget)
        break;
      add(first, 0, repeated, seconds, false);
      if (first == 0 || !layers[first - 1].canDropOutput)
        break;
      repeated += layers[first - 1].outputBytes;
      seconds += layers[first - 1].outputSeconds;
    }
    prune(states[end]);
  }
  if (states.back().empty())
    return {};
  LayerChoices choices(layers.size());
  // The last of a front takes the least time.
  size_t index = states.back().size() - 1;
  for (size_t end = layers.size(); end > 0;) {
    const State &state = states[end][index];
    std::fill(choices.begin() + state.first, choices.begin() + end,
              LayerChoice::Join);
    choices[state.first] =
        state.isKept ? LayerChoice::Keep : LayerChoice::Repeat;
    index = state.previous;
    end = state.first;
  }
  return choices;
}
