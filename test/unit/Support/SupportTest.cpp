//===- SupportTest.cpp - Meshes, targets, suggestions ---------------------===//

#include "shardc/Support/CheckNesting.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/Support/QuoteForShell.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/TargetSpec.h"

#include "gtest/gtest.h"

using namespace shardc;

TEST(MeshSpec, ReadsAxesInOrder) {
  std::string error;
  std::optional<MeshSpec> mesh = parseMeshSpec("data=4, model=2", error);
  ASSERT_TRUE(mesh) << error;
  EXPECT_EQ(*mesh, (MeshSpec{{"data", 4}, {"model", 2}}));
  EXPECT_EQ(toString(*mesh), "data=4,model=2");
}

TEST(MeshSpec, SaysWhatIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "expected NAME=SIZE"},
      {"4", "expected NAME=SIZE"},
      {"data", "needs a size"},
      {"data=4,", "expected NAME=SIZE"},
      {"data=-1", "needs a size"},
      {"data=4x", "needs a size"},
      {"data=99999999999999999999", "needs a size"},
      {"a=2,b=2,a=2", "given twice"},
      {"a=1024,b=1025", "more than 1048576"},
  };
  for (auto [text, expected] : cases) {
    std::string error;
    EXPECT_FALSE(parseMeshSpec(text, error)) << text;
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
}

TEST(TargetSpec, ReadsWhatThereIs) {
  std::string error;
  EXPECT_EQ(parseTargetSpec("cpu", error)->kind, TargetSpec::Kind::CPU);
  EXPECT_EQ(parseTargetSpec("emulated-gpu", error)->kind,
            TargetSpec::Kind::EmulatedGPU);
  EXPECT_EQ(parseTargetSpec("cpu", error)->cpuLevel, "");
  std::optional<TargetSpec> level = parseTargetSpec("cpu:x86-64-v4", error);
  ASSERT_TRUE(level) << error;
  EXPECT_EQ(level->kind, TargetSpec::Kind::CPU);
  EXPECT_EQ(level->cpuLevel, "x86-64-v4");
  std::optional<TargetSpec> gpu = parseTargetSpec("cuda:sm_90", error);
  ASSERT_TRUE(gpu) << error;
  EXPECT_EQ(gpu->kind, TargetSpec::Kind::CUDA);
  EXPECT_EQ(gpu->chip, "sm_90");
}

TEST(TargetSpec, SaysWhatIsWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "unknown target ''"},
      {"cpus", "did you mean 'cpu'?"},
      {"cpu:",
       "unknown level of x86-64 ''; expected one of x86-64-v3, x86-64-v4"},
      {"cpu:x86-64-v2", "did you mean 'x86-64-v3'?"},
      {"cuda:", "unknown GPU ''; expected one of sm_80, sm_86"},
      {"cuda:sm_91", "unknown GPU 'sm_91'; did you mean 'sm_90'?"},
      {"cuda:sm_90 ", "did you mean 'sm_90'?"},
      {"cude:sm_90", "did you mean 'cuda:sm_90'?"},
  };
  for (auto [text, expected] : cases) {
    std::string error;
    EXPECT_FALSE(parseTargetSpec(text, error)) << text;
    EXPECT_NE(error.find(expected), std::string::npos) << error;
  }
}

TEST(Suggest, NearestIsTheSmallestDistance) {
  std::vector<std::string> names = {"import", "propagate", "partition"};
  EXPECT_EQ(findNearest("partitoin", names), "partition");
  EXPECT_EQ(findNearest("imprt", names), "import");
  EXPECT_EQ(findNearest("codegen", names), "");
  EXPECT_EQ(suggest("imprt", names), "; did you mean 'import'?");
  EXPECT_EQ(suggest("codegen", names),
            "; expected one of import, propagate, partition");
}

TEST(CheckNesting, SaysWhereOneBracketTooManyIs) {
  EXPECT_EQ(checkNesting("(a) -> [{b}]", "m.mlir"), "");
  std::string most(maxBrackets, '[');
  EXPECT_EQ(checkNesting(most, "m.mlir"), "");
  EXPECT_EQ(checkNesting("a\n " + most + "(", "m.mlir"),
            "m.mlir:2:258: error: more than 256 brackets are open here\n");
}

TEST(CheckNesting, CountsOnlyWhatIsOpen) {
  std::string most(maxBrackets, '<');
  // Closed brackets, strings, comments, and the heads of arrows.
  EXPECT_EQ(checkNesting("()[]{}<>" + most, ""), "");
  EXPECT_EQ(checkNesting("\"([\\\"{<\" // <(\n" + most, ""), "");
  EXPECT_NE(checkNesting("< ->" + most, ""), "");
  EXPECT_EQ(checkNesting("ML\xefR" + most + most, ""), "");
}

TEST(QuoteForShell, WordsAreTakenAsTheyAre) {
  EXPECT_EQ(quoteForShell("out/best-2.mlir"), "out/best-2.mlir");
  EXPECT_EQ(quoteForShell("--fix=w0,model=2"), "--fix=w0,model=2");
  EXPECT_EQ(quoteForShell(""), "''");
  EXPECT_EQ(quoteForShell("a b; rm *"), "'a b; rm *'");
  EXPECT_EQ(quoteForShell("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(quoteForShell("caf\xc3\xa9"), "'caf\xc3\xa9'");
  // One line, whatever it says.
  EXPECT_EQ(quoteForShell("a\nb'\\\x1b"), "$'a\\nb\\'\\\\\\x1b'");
}
