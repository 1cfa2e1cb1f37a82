//===- LayerChoicesTest.cpp - Choices for layers against all of them ------===//

#include "shardc/Transforms/Kernels/LayerFit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

using namespace shardc;

namespace {

std::vector<ChainLayer> makeRandomChain(std::mt19937 &random, size_t size) {
  auto draw = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  std::vector<ChainLayer> layers(size);
  for (ChainLayer &layer : layers) {
    layer.outputBytes = draw(1, 9);
    layer.innerBytes = draw(0, 9);
    layer.repeatSeconds = layer.innerBytes ? draw(1, 9) : 0;
    layer.outputSeconds = draw(0, 9);
    layer.canDropOutput = draw(0, 4) > 0;
  }
  return layers;
}

LayerChoices makeChoices(const std::string &text) {
  LayerChoices choices;
  for (char letter : text)
    choices.push_back(LayerChoice(letter));
  return choices;
}

/// The least seconds of all choices whose bytes, by `getBytes`, are at most
/// `limit`; infinity if there are none.
template <typename GetBytes>
double tryAll(const std::vector<ChainLayer> &layers, int64_t limit,
              GetBytes getBytes) {
  double best = std::numeric_limits<double>::infinity();
  size_t number = 1;
  for (size_t index = 0; index < layers.size(); ++index)
    number *= 3;
  for (size_t code = 0; code < number; ++code) {
    LayerChoices choices;
    for (size_t rest = code, index = 0; index < layers.size();
         ++index, rest /= 3)
      choices.push_back(LayerChoice("krj"[rest % 3]));
    if (areValid(layers, choices) && getBytes(choices) <= limit)
      best = std::min(best, getSeconds(layers, choices));
  }
  return best;
}

} // namespace

TEST(LayerChoices, PeakOfTheModel) {
  std::vector<ChainLayer> layers(4, {10, 3, 1, 2});
  EXPECT_EQ(getModelPeak(layers, makeChoices("kkkk")), 52);
  // Only one layer at a time has its inner values.
  EXPECT_EQ(getModelPeak(layers, makeChoices("rrrr")), 43);
  // The outputs of the first and the third are dropped.
  EXPECT_EQ(getModelPeak(layers, makeChoices("rjrj")), 36);
  EXPECT_EQ(getModelPeak(layers, makeChoices("rjrj"), 200), 52);
  EXPECT_EQ(getSeconds(layers, makeChoices("rjrj")), 8);
  EXPECT_EQ(toString(makeChoices("krj")), "krj");
  EXPECT_FALSE(areValid(layers, makeChoices("kjrr")));
}

TEST(LayerChoices, TheModelsBestChoiceIsThatOfAll) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    std::vector<ChainLayer> layers = makeRandomChain(random, 1 + round % 7);
    int64_t most =
        getModelPeak(layers, LayerChoices(layers.size(), LayerChoice::Keep));
    for (int64_t budget = 0; budget <= most; ++budget) {
      double best = tryAll(layers, budget, [&](const LayerChoices &choices) {
        return getModelPeak(layers, choices);
      });
      LayerChoices found = chooseWithin(layers, budget);
      ASSERT_EQ(found.empty(), std::isinf(best)) << budget;
      if (found.empty())
        continue;
      ASSERT_TRUE(areValid(layers, found)) << toString(found);
      ASSERT_LE(getModelPeak(layers, found), budget) << toString(found);
      ASSERT_EQ(getSeconds(layers, found), best) << toString(found);
    }
  }
}

// The memory of a plan is not that of the model: it has gradients besides.
TEST(LayerFit, SmallChainsAreSolvedExactly) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<ChainLayer> layers = makeRandomChain(random, 1 + round % 4);
    auto measure = [&](const LayerChoices &choices) {
      int64_t bytes = getModelPeak(layers, choices) + 20;
      for (size_t index = 0; index < choices.size(); ++index)
        bytes += choices[index] == LayerChoice::Join ? 1 + index % 3 : 0;
      return bytes;
    };
    int64_t most = measure(LayerChoices(layers.size(), LayerChoice::Keep));
    for (int64_t limit = 0; limit < most; ++limit) {
      LayerFit search(layers, limit, most);
      while (std::optional<LayerChoices> next = search.getNext())
        search.add(*next, measure(*next), getSeconds(layers, *next));
      double best = tryAll(layers, limit, measure);
      ASSERT_EQ(search.getBest() == nullptr, std::isinf(best));
      if (search.getBest()) {
        ASSERT_EQ(getSeconds(layers, *search.getBest()), best);
      }
    }
  }
}

// 96 layers are beyond trying everything: few plans are measured.
TEST(LayerFit, LongChainsTakeFewTrials) {
  std::vector<ChainLayer> layers(96, {10, 0, 0, 2});
  auto measure = [&](const LayerChoices &choices) {
    return getModelPeak(layers, choices) + 57;
  };
  int64_t most = measure(LayerChoices(layers.size(), LayerChoice::Keep));
  for (int64_t limit : {most - 1, most / 2, most / 3, most / 4}) {
    LayerFit search(layers, limit, most);
    int64_t trials = 0;
    while (std::optional<LayerChoices> next = search.getNext()) {
      search.add(*next, measure(*next), getSeconds(layers, *next));
      ++trials;
    }
    EXPECT_LE(trials, static_cast<int64_t>(std::size(LayerFit::percents)) *
                          static_cast<int64_t>(LayerFit::mostTrials + 1));
    ASSERT_TRUE(search.getBest()) << limit;
    EXPECT_EQ(getSeconds(layers, *search.getBest()),
              getSeconds(layers, chooseWithin(layers, limit - 57)));
  }
}

TEST(LayerFit, NothingFits) {
  std::vector<ChainLayer> layers(40, {10, 5, 1, 2});
  LayerFit search(layers, 30, 1000);
  while (std::optional<LayerChoices> next = search.getNext())
    search.add(*next, getModelPeak(layers, *next) + 100, 1);
  EXPECT_EQ(search.getBest(), nullptr);
  // Groups of about six layers need the least.
  EXPECT_LT(search.getLeastBytes(), 300);
}
