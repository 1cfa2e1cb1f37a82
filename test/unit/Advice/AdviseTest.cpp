//===- AdviseTest.cpp - Candidates, bounds and the order of plans ---------===//

#include "shardc/Advice/AdviceReport.h"
#include "shardc/Models/Mlp.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace shardc;
using testing::HasSubstr;

static AdviceRequest makeRequest(const std::string &machine, int64_t devices) {
  MlpSpec spec;
  spec.layers = {256, 512, 512, 256};
  spec.batchSize = 512;
  spec.optimizer = "adam";
  AdviceRequest request;
  request.model.text = printMlp(spec);
  request.model.name = "mlp.mlir";
  request.model.options.machine = machine;
  request.limits.devices = devices;
  // The search takes longer than all others together.
  request.limits.partition = "follow";
  return request;
}

static ModelFacts getFacts(const AdviceRequest &request) {
  std::string errors;
  llvm::raw_string_ostream os(errors);
  std::optional<ModelFacts> facts = readFacts(request.model, os);
  EXPECT_TRUE(facts) << errors;
  return facts.value_or(ModelFacts());
}

TEST(Advise, FactsAreThoseOfTheModel) {
  ModelFacts facts = getFacts(makeRequest("h100", 8));
  int64_t weights = 256 * 512 + 512 * 512 + 512 * 256;
  EXPECT_EQ(facts.batchSize, 512);
  EXPECT_EQ(facts.numLayers, 3);
  EXPECT_EQ(facts.numParameters, weights + 512 + 512 + 256);
  EXPECT_EQ(facts.parameterBytes, 4 * facts.numParameters);
  // Both moments, and the number of the step.
  EXPECT_EQ(facts.stateBytes, 2 * facts.parameterBytes + 4);
  EXPECT_EQ(facts.matmulFlops, 6 * 512 * weights - 2 * 512 * 256 * 512);
}

TEST(Advise, ListsEveryMeshOnce) {
  EXPECT_EQ(listMeshes(8, {"data"}), (std::vector<MeshSpec>{{{"data", 8}}}));
  EXPECT_EQ(listMeshes(12, {"data", "model"}),
            (std::vector<MeshSpec>{{{"data", 2}, {"model", 6}},
                                   {{"data", 3}, {"model", 4}},
                                   {{"data", 4}, {"model", 3}},
                                   {{"data", 6}, {"model", 2}}}));
  EXPECT_EQ(listMeshes(7, {"data", "model"}).size(), 0u);
  EXPECT_EQ(listMeshes(8, {"stage", "data", "model"}).size(), 1u);
  EXPECT_EQ(listMeshes(1024, {"stage", "data", "model"}).size(), 36u);
}

TEST(Advise, CandidatesRespectLimits) {
  ModelFacts facts;
  facts.batchSize = 6;
  facts.numLayers = 3;
  CandidateLimits limits;
  limits.devices = 8;
  for (const Candidate &candidate : listCandidates(facts, limits)) {
    EXPECT_LE(candidate.getRowShards(), 6) << candidate.getName();
    EXPECT_LE(candidate.getStages(), 3) << candidate.getName();
    EXPECT_LE(candidate.microbatches * candidate.getRowShards(), 6)
        << candidate.getName();
  }
  limits.fixedAxes = {{"model", 2}};
  limits.axes = {"data", "model"};
  for (const Candidate &candidate : listCandidates(facts, limits))
    EXPECT_EQ(toString(candidate.mesh), "data=4,model=2");
  limits.hasStates = false;
  limits.fixedAxes.clear();
  for (const Candidate &candidate : listCandidates(facts, limits))
    EXPECT_NE(candidate.strategy, "zero1");
  limits.devices = 1;
  limits.axes.clear();
  ASSERT_EQ(listCandidates(facts, limits).size(), 1u);
  EXPECT_EQ(listCandidates(facts, limits)[0].getName(), "none on data=1");
}

TEST(Advise, SearchesMeshesOfEqualLinksOnce) {
  ModelFacts facts;
  facts.batchSize = 64;
  CandidateLimits limits;
  limits.devices = 8;
  limits.partition = "cheapest";
  EXPECT_EQ(listCandidates(facts, limits).size(), 3u);
  limits.hasOneLink = true;
  EXPECT_EQ(listCandidates(facts, limits).size(), 2u);
}

TEST(Advise, NoPlanIsBelowItsBound) {
  for (const char *machine : {"cpu", "h100"}) {
    AdviceRequest request = makeRequest(machine, 8);
    ModelFacts facts = getFacts(request);
    request.rows = 1000;
    Advice advice = advise(request, facts);
    ASSERT_GT(advice.plans.size(), 20u);
    for (const AdvisedPlan &plan : advice.plans) {
      ASSERT_TRUE(plan.price) << plan.candidate.getName() << plan.error;
      EXPECT_GE(plan.price->seconds, plan.bound.seconds)
          << machine << ": " << plan.candidate.getName();
      EXPECT_GE(plan.price->peakBytes, plan.bound.memoryBytes)
          << machine << ": " << plan.candidate.getName();
    }
  }
}

/// With what saves memory for time, and in bf16.
TEST(Advise, NoVariantIsBelowItsBounds) {
  for (const char *dtype : {"f32", "bf16"}) {
    AdviceRequest request = makeRequest("h100", 8);
    request.model.options.dtype = dtype;
    ModelFacts facts = getFacts(request);
    double nearest = 0;
    for (Candidate candidate : listCandidates(facts, request.limits))
      for (bool regather : {false, true})
        for (bool recomputes : {false, true})
          for (int64_t times : {1, 4}) {
            Candidate variant = candidate;
            bool isPipeline = candidate.getStages() > 1;
            if (isPipeline && times > 1)
              continue;
            variant.regather = regather;
            if (recomputes)
              variant.recompute = isPipeline ? "stage" : "layer";
            variant.microbatches *= times;
            Trial trial = llvm::cantFail(Trial::make(request.model, variant));
            std::vector<int64_t> stages;
            if (isPipeline)
              stages = llvm::cantFail(Trial::make(request.model, variant))
                           .assignStages();
            EXPECT_EQ(stages.size(), isPipeline ? 3u : 0u);
            LowerBound first = trial.getLowerBound(facts);
            LowerBound bound = trial.getLowerBound(facts, stages);
            Price price = llvm::cantFail(trial.price());
            std::string name = std::string(dtype) + ": " + variant.getName() +
                               " " + variant.getChoices();
            EXPECT_LE(first.memoryBytes, price.peakBytes) << name;
            EXPECT_LE(first.seconds, price.seconds) << name;
            EXPECT_LE(first.seconds, bound.seconds) << name;
            EXPECT_LE(bound.stateBytes, bound.memoryBytes) << name;
            EXPECT_LE(bound.memoryBytes, price.peakBytes) << name;
            EXPECT_LE(bound.seconds, price.seconds) << name;
            nearest = std::max(nearest, bound.memoryBytes / price.peakBytes);
          }
    EXPECT_GT(nearest, 0.7) << dtype;
  }
}

static void expectSame(const Price &found, const Price &expected,
                       const std::string &name) {
  EXPECT_EQ(found.isCompiled, expected.isCompiled) << name;
  EXPECT_EQ(found.seconds, expected.seconds) << name;
  EXPECT_EQ(found.computeSeconds, expected.computeSeconds) << name;
  EXPECT_EQ(found.memorySeconds, expected.memorySeconds) << name;
  EXPECT_EQ(found.communicationSeconds, expected.communicationSeconds) << name;
  EXPECT_EQ(found.waitSeconds, expected.waitSeconds) << name;
  EXPECT_EQ(found.bubble, expected.bubble) << name;
  EXPECT_EQ(found.peakBytes, expected.peakBytes) << name;
  EXPECT_EQ(found.matmulFlops, expected.matmulFlops) << name;
  EXPECT_EQ(found.wireBytes, expected.wireBytes) << name;
}

/// Trials that share what is the same before recomputation have the prices of
/// those that do not.
TEST(Advise, PreparedTrialsHaveTheSamePrices) {
  for (const char *machine : {"cpu", "h100"}) {
    AdviceRequest request = makeRequest(machine, 8);
    ModelFacts facts = getFacts(request);
    ParsedModel parsed = llvm::cantFail(ParsedModel::parse(request.model));
    size_t count = 0;
    std::vector<Candidate> candidates = listCandidates(facts, request.limits);
    // One search, since it takes longer than all others together.
    candidates.emplace_back().strategy = cheapestName;
    candidates.back().mesh = {{"data", 8}};
    for (Candidate candidate : candidates) {
      if (candidate.getStages() > 1)
        continue;
      for (int64_t microbatches : {1, 2})
        for (bool regather : {false, true}) {
          candidate.microbatches = microbatches;
          candidate.regather = regather;
          Trial prepared =
              llvm::cantFail(Trial::make(request.model, candidate));
          llvm::cantFail(prepared.prepare());
          for (const char *recompute : {"none", "layer", "none"}) {
            Candidate variant = candidate;
            variant.recompute = recompute;
            std::string name = std::string(machine) + ": " + variant.getName() +
                               " " + variant.getChoices();
            Trial trial = llvm::cantFail(Trial::make(request.model, variant));
            LowerBound own = trial.getLowerBound(facts);
            LowerBound shared =
                llvm::cantFail(Trial::make(request.model, variant, parsed))
                    .getLowerBound(facts);
            EXPECT_EQ(own.seconds, shared.seconds) << name;
            EXPECT_EQ(own.memoryBytes, shared.memoryBytes) << name;
            Price price = llvm::cantFail(prepared.priceRecomputing(recompute));
            EXPECT_LE(prepared.getArgumentBytes(), price.peakBytes) << name;
            expectSame(price, llvm::cantFail(trial.price(/*compares=*/false)),
                       name);
            ++count;
          }
        }
    }
    EXPECT_GT(count, 100u);
  }
}

/// The second bound of pipelines, which takes a compilation; and the price of
/// the step and of all programs, compiled apart. In bf16 with a third program.
TEST(Advise, NoStepIsBelowItsTasks) {
  for (const char *machine : {"cpu", "h100"})
    for (const char *recompute : {"none", "stage"}) {
      AdviceRequest request = makeRequest(machine, 8);
      if (machine == std::string("h100"))
        request.model.options.dtype = "bf16";
      ModelFacts facts = getFacts(request);
      request.limits.recompute = recompute;
      size_t count = 0;
      double nearest = 0;
      for (const Candidate &candidate : listCandidates(facts, request.limits)) {
        if (candidate.getStages() == 1)
          continue;
        auto make = [&] {
          return llvm::cantFail(Trial::make(request.model, candidate));
        };
        std::string name = std::string(machine) + ": " + candidate.getName() +
                           " " + candidate.getChoices();
        Price price = llvm::cantFail(make().price());
        Trial trial = make();
        Price step = llvm::cantFail(trial.priceStep(1));
        EXPECT_TRUE(step.isCompiled);
        EXPECT_EQ(step.seconds, price.seconds) << name;
        EXPECT_LE(step.peakBytes, price.peakBytes) << name;
        expectSame(llvm::cantFail(trial.priceAll()), price, name);
        Price bound = llvm::cantFail(make().priceStep(0));
        EXPECT_FALSE(bound.isCompiled);
        EXPECT_LE(bound.seconds, price.seconds) << name;
        nearest = std::max(nearest, bound.seconds / price.seconds);
        ++count;
      }
      EXPECT_GT(count, 20u);
      EXPECT_GT(nearest, 0.5) << "of " << machine << ", " << recompute;
    }
}

TEST(Advise, PruningKeepsTheFastest) {
  AdviceRequest request = makeRequest("cpu", 8);
  ModelFacts facts = getFacts(request);
  request.rows = 1000;
  Advice all = advise(request, facts);
  request.rows = 2;
  Advice few = advise(request, facts);
  EXPECT_LT(few.numCompiled, all.numCompiled);
  for (int i : {0, 1}) {
    EXPECT_EQ(few.plans[i].candidate.getName(),
              all.plans[i].candidate.getName());
    EXPECT_EQ(few.plans[i].price->seconds, all.plans[i].price->seconds);
  }
}

TEST(Advise, PruningKeepsTheFastestThatFits) {
  for (const char *machine : {"cpu", "h100"})
    for (int64_t memory : {4'000'000, 6'000'000, 9'000'000}) {
      AdviceRequest request = makeRequest(machine, 8);
      ModelFacts facts = getFacts(request);
      request.model.options.deviceMemory = memory;
      request.rows = 1000;
      Advice all = advise(request, facts);
      request.rows = 3;
      Advice few = advise(request, facts);
      EXPECT_LT(few.numCompiled, all.numCompiled);
      for (int i : {0, 1, 2}) {
        ASSERT_TRUE(few.plans[i].fits() && all.plans[i].fits());
        EXPECT_EQ(few.plans[i].price->seconds, all.plans[i].price->seconds)
            << machine << ", " << memory
            << " bytes: " << few.plans[i].candidate.getName() << " and "
            << all.plans[i].candidate.getName();
      }
    }
}

/// With searches, whose plans are not compared with the one that has all of the
/// model on each device where that one does not fit: 199 kB with states.
TEST(Advise, PruningKeepsSearchesThatFit) {
  for (const char *machine : {"cpu", "h100"})
    for (int64_t memory : {80'000, 190'000, 400'000}) {
      AdviceRequest request = makeRequest(machine, 8);
      MlpSpec spec;
      spec.layers = {64, 128, 64};
      spec.batchSize = 64;
      spec.optimizer = "adam";
      request.model.text = printMlp(spec);
      request.limits.partition.clear();
      request.limits.axes = {"data"};
      ModelFacts facts = getFacts(request);
      request.model.options.deviceMemory = memory;
      request.rows = 1000;
      Advice all = advise(request, facts);
      request.rows = 3;
      Advice few = advise(request, facts);
      for (int i : {0, 1, 2}) {
        ASSERT_EQ(few.plans[i].fits(), all.plans[i].fits());
        if (!all.plans[i].fits())
          break;
        EXPECT_EQ(few.plans[i].price->seconds, all.plans[i].price->seconds)
            << machine << ", " << memory
            << " bytes: " << few.plans[i].candidate.getName() << " and "
            << all.plans[i].candidate.getName();
      }
      // What a search is said to cost is the cost of the plan that its flags
      // give, compared or not.
      for (const AdvisedPlan &plan : all.plans) {
        if (!plan.candidate.isCheapest() || !plan.fits())
          continue;
        Trial trial =
            llvm::cantFail(Trial::make(request.model, plan.candidate));
        expectSame(llvm::cantFail(trial.price()), *plan.price,
                   std::string(machine) + ": " + plan.candidate.getName());
      }
    }
}

/// The table does not depend on which thread is faster.
TEST(Advise, ComesOutTheSameEachTime) {
  AdviceRequest request = makeRequest("h100", 8);
  ModelFacts facts = getFacts(request);
  request.model.options.deviceMemory = 4'000'000;
  Advice first = advise(request, facts);
  for (int i = 0; i < 3; ++i) {
    Advice next = advise(request, facts);
    EXPECT_EQ(next.numCompiled, first.numCompiled);
    for (auto [plan, expected] : llvm::zip_equal(next.plans, first.plans)) {
      EXPECT_EQ(plan.candidate.getName(), expected.candidate.getName());
      EXPECT_EQ(plan.outcome, expected.outcome);
      EXPECT_EQ(plan.price.has_value(), expected.price.has_value());
      if (plan.price && expected.price) {
        EXPECT_EQ(plan.price->seconds, expected.price->seconds);
      }
    }
  }
}

TEST(Advise, ShardsWhatDoesNotFit) {
  AdviceRequest request = makeRequest("h100", 8);
  ModelFacts facts = getFacts(request);
  // Enough for everything sharded, and too little for a whole copy with states.
  request.model.options.deviceMemory = 3'000'000;
  Advice advice = advise(request, facts);
  ASSERT_TRUE(advice.getBest());
  for (const AdvisedPlan &plan : advice.plans) {
    if (plan.fits()) {
      EXPECT_LE(plan.price->peakBytes, 3'000'000);
    }
    if (plan.candidate.strategy == "dp") {
      EXPECT_EQ(plan.outcome, Outcome::TooLarge);
      EXPECT_THAT(explainLoss(advice, plan),
                  HasSubstr("does not fit: parameters and states alone"));
    }
  }
  request.model.options.deviceMemory = 1000;
  Advice none = advise(request, facts);
  EXPECT_FALSE(none.getBest());
}
