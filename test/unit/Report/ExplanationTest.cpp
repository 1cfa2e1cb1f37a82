//===- ExplanationTest.cpp - Explanations as JSON and their differences ---===//

#include "shardc/Report/ExplanationDiff.h"

#include "gtest/gtest.h"

using namespace shardc;

namespace {

MovedTensor makeTensor(std::string name, int64_t bytes) {
  MovedTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = "f32";
  tensor.wireBytes = bytes;
  tensor.producer = {"parameter", "", "m.mlir:3:7", {tensor.name}, {}};
  tensor.consumer = {"linear", "forward", "m.mlir:9:11", {}, {}};
  return tensor;
}

Explanation makeExplanation(std::vector<MovedTensor> tensors) {
  ExplainedCollective collective;
  collective.kind = "all_gather";
  collective.axes = {"data"};
  ExplainedProgram program;
  program.name = "train_step";
  for (const MovedTensor &tensor : tensors)
    collective.wireBytes += tensor.wireBytes;
  program.cost.wireBytes = collective.wireBytes;
  collective.tensors = std::move(tensors);
  program.collectives = {collective};
  Explanation explanation;
  explanation.mesh = "data=4";
  explanation.programs = {program};
  return explanation;
}

llvm::json::Value getJSON(const Explanation &explanation) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeJSON(explanation, os);
  return llvm::cantFail(llvm::json::parse(text));
}

} // namespace

TEST(ExplanationTest, JsonKeepsEverything) {
  MovedTensor tensor = makeTensor("w0", 12);
  tensor.producer.origins = {
      {"data", "w0", "m.mlir:3:7", {{"relu", "m.mlir:8:1"}}}};
  tensor.fixIt =
      FixIt{{{"m.mlir:3:7", "w0", "shardc.sharding = x"}}, {1, 2, 3}};
  tensor.move = 7;
  tensor.producer.stage = 0;
  tensor.consumer.stage = 2;
  Explanation written = makeExplanation({tensor});
  written.programs[0].collectives[0].runs = 4;
  written.programs[0].collectives[0].costWithout = ProgramCost{4, 5, 6};
  written.programs[0].cost.peakBytes = 7;
  written.programs[0].cost.sumOfWireBytes = 8;
  llvm::json::Value value = getJSON(written);
  Explanation read;
  llvm::json::Path::Root root;
  ASSERT_TRUE(fromJSON(value, read, root));
  EXPECT_EQ(getJSON(read), value);
  const ExplainedCollective &collective = read.programs[0].collectives[0];
  EXPECT_EQ(collective.tensors[0].fixIt->cost.stateBytes, 3);
  EXPECT_EQ(collective.tensors[0].move, 7);
  EXPECT_EQ(collective.runs, 4);
  EXPECT_EQ(collective.costWithout->stateBytes, 6);
}

TEST(ExplanationTest, RejectsAFixItWithoutChanges) {
  MovedTensor tensor = makeTensor("w0", 12);
  tensor.fixIt = FixIt();
  Explanation read;
  llvm::json::Path::Root root("explanation");
  EXPECT_FALSE(fromJSON(getJSON(makeExplanation({tensor})), read, root));
  EXPECT_NE(llvm::toString(root.getError()).find("at least one change"),
            std::string::npos);
}

TEST(ExplanationTest, ChainSaysWhatOneOpHandsToItself) {
  MovedTensor tensor = makeTensor("result of linear at m.mlir:9", 12);
  tensor.producer = tensor.consumer;
  tensor.from = "[{}] unreduced={\"data\"}";
  tensor.to = "[{}]";
  std::vector<std::string> lines = getChainLines(tensor);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "the rest of that linear reads it as [{}]");
}

TEST(ExplanationTest, ChainSaysWhichAxesShardNothing) {
  MovedTensor tensor = makeTensor("w0", 12);
  tensor.producer.origins = {{"data", "w0", "m.mlir:3:7", {}},
                             {"model", "w0", "m.mlir:3:7", {}}};
  tensor.consumer.origins = {{"data", "x", "m.mlir:2:7", {}}};
  tensor.from = "[{\"data\"}, {\"model\"}]";
  tensor.to = "[{}, {}]";
  std::vector<std::string> lines = getChainLines(tensor);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[4], "  \"data\": annotated on x at m.mlir:2");
  EXPECT_EQ(lines[5], "  \"model\": shards nothing there");
}

TEST(ExplanationTest, WhatPays) {
  auto cost = [](int64_t bytes, double microseconds) {
    ProgramCost cost;
    cost.wireBytes = bytes;
    cost.seconds = microseconds * 1e-6;
    return cost;
  };
  ProgramCost now = cost(1000, 100);
  EXPECT_FALSE(pays(now, now));
  EXPECT_TRUE(pays(now, cost(2000, 99)));
  // Nobody sees so little.
  EXPECT_FALSE(pays(now, cost(1000, 99.99)));
  EXPECT_TRUE(pays(now, cost(999, 100)));
  EXPECT_TRUE(pays(now, cost(800, 110)));
  EXPECT_FALSE(pays(now, cost(800, 130)));
}

TEST(ExplanationTest, ParagraphSaysWhyNoChangePays) {
  ExplainedProgram program = makeExplanation({makeTensor("w0", 8)}).programs[0];
  program.cost.seconds = 100e-6;
  ExplainedCollective &collective = program.collectives[0];
  collective.costWithout = program.cost;
  auto find = [&](const std::string &text) {
    for (const std::string &line : getParagraphLines(collective, program))
      if (line.find(text) != std::string::npos)
        return true;
    return false;
  };
  EXPECT_TRUE(find("remove by  no change that pays; with the fastest"));
  EXPECT_TRUE(find("then 8 bytes on the wire (+0), +0 bytes of state"));
  collective.costWithout->seconds = 50e-6;
  EXPECT_TRUE(find("remove by  no change that pays in the step; with"));
}

TEST(ExplanationTest, ParagraphListsTheStepsOfAMove) {
  ExplainedProgram program = makeExplanation({makeTensor("w0", 8)}).programs[0];
  program.collectives.push_back(program.collectives[0]);
  program.collectives[1].kind = "all_to_all";
  auto getSteps = [&] {
    std::string steps;
    for (const std::string &line :
         getParagraphLines(program.collectives[0], program))
      if (line.find(" steps: ") != std::string::npos)
        steps = line;
    return steps;
  };
  EXPECT_NE(getSteps().find("in 2 steps: all_gather over \"data\", "
                            "all_to_all over \"data\""),
            std::string::npos);
  // Another move of the same tensor is no step of this one.
  program.collectives[1].tensors[0].move = 1;
  EXPECT_EQ(getSteps(), "");
}

TEST(ExplanationTest, ManyCollectivesAreSummedUpByLine) {
  Explanation explanation = makeExplanation({makeTensor("w0", 8)});
  ExplainedProgram &program = explanation.programs[0];
  program.collectives[0].guilty = "m.mlir:3:7";
  program.collectives.resize(12, program.collectives[0]);
  auto getText = [&] {
    std::string text;
    llvm::raw_string_ostream os(text);
    print(explanation, os);
    return text;
  };
  EXPECT_EQ(getText().find("to blame"), std::string::npos);
  program.collectives.push_back(program.collectives[0]);
  program.collectives.back().guilty = "dir/m.mlir:40:7";
  program.collectives.back().kind = "all_reduce";
  program.collectives.back().wireBytes = 904;
  program.cost.wireBytes = 1000;
  EXPECT_NE(getText().find(
                "  to blame  m.mlir:40           904 B   90%  1 all_reduce\n"
                "            m.mlir:3             96 B   10%  12 all_gather\n"),
            std::string::npos)
      << getText();
}

TEST(ExplanationDiffTest, MatchesByNameWithoutPlaceAndByOrder) {
  Explanation here = makeExplanation(
      {makeTensor("result of relu at a.mlir:4", 8),
       makeTensor("result of relu at a.mlir:6", 8), makeTensor("w0", 12)});
  Explanation other = makeExplanation(
      {makeTensor("result of relu at b.mlir:14", 8),
       makeTensor("result of relu at b.mlir:16", 16), makeTensor("w1", 12)});
  std::vector<DiffEntry> entries = compare(here, other).programs[0].entries;
  ASSERT_EQ(entries.size(), 3u);
  // The second activation sends more there.
  EXPECT_EQ(entries[0].tensor, "result of relu at a.mlir:6");
  EXPECT_EQ(entries[0].here->wireBytes, 8);
  EXPECT_EQ(entries[0].other->wireBytes, 16);
  // One weight moves here alone, another one there alone.
  EXPECT_EQ(entries[1].tensor, "w0");
  EXPECT_FALSE(entries[1].other);
  EXPECT_EQ(entries[2].tensor, "w1");
  EXPECT_FALSE(entries[2].here);
}
