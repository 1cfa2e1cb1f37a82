//===- OptionTableTest.cpp ------------------------------------------------===//

#include "shardc/Pipelines/OptionTable.h"

#include <gtest/gtest.h>
#include <set>

using namespace shardc;

static const CompileOption &find(const std::string &name) {
  for (const CompileOption &option : getCompileOptions())
    if (option.name == name)
      return option;
  ADD_FAILURE() << "no option " << name;
  return getCompileOptions().front();
}

static std::string set(const std::string &name, const std::string &text) {
  CompileOptions options;
  return setOption(find(name), text, options);
}

namespace {

TEST(OptionTable, NamesEachOptionOnce) {
  std::set<std::string> names;
  for (const CompileOption &option : getCompileOptions())
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
}

TEST(OptionTable, AcceptsItsDefaults) {
  for (const CompileOption &option : getCompileOptions())
    EXPECT_EQ(checkValue(option, CompileOptions()), "");
  EXPECT_EQ(checkOptions(CompileOptions()), "");
}

/// What is set is the field of that option and no other, and its text is read
/// back as the same value.
TEST(OptionTable, SetsOneField) {
  for (const CompileOption &option : getCompileOptions()) {
    CompileOptions options;
    std::string text = option.accepts == CompileOption::Accepts::OneOf
                           ? getChoices(option).back()
                       : option.accepts == CompileOption::Accepts::Fraction
                           ? "0.25"
                           : "1";
    ASSERT_EQ(setOption(option, text, options), "");
    EXPECT_EQ(toText(getValue(option, options)), text);
    for (const CompileOption &other : getCompileOptions())
      EXPECT_EQ(getValue(other, options) == getValue(other, CompileOptions()),
                &other != &option)
          << option.name << " and " << other.name;
  }
}

TEST(OptionTable, ReadsIntegersWithExponents) {
  CompileOptions options;
  EXPECT_EQ(setOption(find("device-memory"), "80e9", options), "");
  EXPECT_EQ(options.deviceMemory, 80'000'000'000);
  EXPECT_EQ(setOption(find("device-memory"), "1.5E3", options), "");
  EXPECT_EQ(options.deviceMemory, 1500);
  for (const char *text : {"1.5", "15e-1", "1e19", "e3", "1e3x", "-1e3", "inf"})
    EXPECT_EQ(setOption(find("device-memory"), text, options),
              "--device-memory: '" + std::string(text) +
                  "' is not an integer of at least 0");
  EXPECT_EQ(options.deviceMemory, 1500);
}

TEST(OptionTable, RefusesOtherValues) {
  EXPECT_EQ(set("gap", "1"),
            "--gap: '1' is not a number of at least 0 and less than 1");
  EXPECT_EQ(set("gap", "nan"),
            "--gap: 'nan' is not a number of at least 0 and less than 1");
  EXPECT_EQ(set("gap", "0.1x"),
            "--gap: '0.1x' is not a number of at least 0 and less than 1");
  EXPECT_EQ(set("bucket-bytes", "-1"),
            "--bucket-bytes: '-1' is not an integer of at least 0");
  EXPECT_EQ(set("bucket-bytes", "1MB"),
            "--bucket-bytes: '1MB' is not an integer of at least 0");
  EXPECT_EQ(set("bucket-bytes", "9223372036854775808"),
            "--bucket-bytes: '9223372036854775808' is not an integer of at "
            "most 9223372036854775807");
  EXPECT_EQ(set("batch-size", "0"),
            "--batch-size: '0' is not an integer of at least 1");
  EXPECT_EQ(set("dtype", "fp16"),
            "--dtype: unknown value 'fp16'; did you mean 'bf16'?");
  EXPECT_EQ(set("objective", "money"),
            "--objective: unknown value 'money'; expected one of time, bytes");
  EXPECT_EQ(set("learning-rate", "0"),
            "--learning-rate: '0' is not a number above 0");
  EXPECT_EQ(set("learning-rate", "inf"),
            "--learning-rate: 'inf' is not a number above 0");
  EXPECT_EQ(set("clip-norm", "-1"),
            "--clip-norm: '-1' is not a number above 0");
  EXPECT_EQ(set("clip-norm", "inf"), "");
  EXPECT_EQ(set("regather", "yes"), "--regather: 'yes' is not 0 or 1");
  EXPECT_EQ(set("mesh", ""), "--mesh: expected a value, found none");
}

TEST(OptionTable, ChecksValuesThatProgramsSet) {
  CompileOptions options;
  options.microbatches = -2;
  EXPECT_EQ(checkOptions(options),
            "--microbatches: '-2' is not an integer of at least 1");
  options.microbatches = 0;
  options.mesh = "data=";
  EXPECT_NE(checkOptions(options).find("--mesh: "), std::string::npos);
  options.mesh.clear();
  options.optimizer = "adm";
  EXPECT_EQ(checkOptions(options),
            "--optimizer: unknown optimizer 'adm'; expected sgd, momentum, "
            "adam or adamw");
  options.optimizer = "sgd,b1=0.9";
  EXPECT_EQ(checkOptions(options),
            "--optimizer: optimizer sgd has no hyper-parameter 'b1'; it has "
            "learning_rate, weight_decay");
  options.optimizer = "adam,b1";
  EXPECT_EQ(checkOptions(options), "--optimizer: 'b1' is not a number with its "
                                   "name, such as b1=0.9");
  options.optimizer = "adam,b1=0.9,b1=0.8";
  EXPECT_EQ(checkOptions(options), "--optimizer: 'b1' is given twice");
  options.optimizer.clear();
  options.schedule = "cosine,warmup_steps=10,decay_steps=5";
  EXPECT_EQ(checkOptions(options),
            "--schedule: schedule cosine needs decay_steps > warmup_steps");
  options.schedule.clear();
  options.partition.clear();
  EXPECT_NE(checkOptions(options).find("--partition: unknown value ''"),
            std::string::npos);
}

} // namespace
