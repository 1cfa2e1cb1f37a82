//===- CompilerTest.cpp - The compiler for C ------------------------------===//

#include "shardc-c/Compiler.h"

#include "llvm/Support/JSON.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

using namespace llvm;

namespace {

struct Free {
  void operator()(shardc_output *output) const { shardc_output_free(output); }
};
using Output = std::unique_ptr<shardc_output, Free>;

std::string toText(shardc_bytes bytes) { return {bytes.data, bytes.size}; }

json::Value parse(shardc_bytes bytes) {
  Expected<json::Value> value = json::parse(toText(bytes));
  return value ? std::move(*value) : (consumeError(value.takeError()), nullptr);
}

using Options = std::vector<shardc_option>;

Output writeMlp(const Options &options) {
  return Output(shardc_write_mlp(options.data(), options.size()));
}

Output compile(const std::string &model, const Options &options = {},
               bool explain = false) {
  return Output(shardc_compile(model.data(), model.size(), "m.mlir",
                               options.data(), options.size(), explain));
}

/// The text of the first message.
std::string firstMessage(const Output &output) {
  json::Value messages = parse(shardc_output_messages(output.get()));
  const json::Array *list = messages.getAsArray();
  return list && !list->empty()
             ? list->front().getAsObject()->getString("text")->str()
             : "";
}

TEST(CompilerCAPITest, CompilesAnMlp) {
  Output model = writeMlp({{"layers", "4,8,2"},
                           {"strategy", "fsdp"},
                           {"mesh", "data=2"},
                           {"batch-size", "8"}});
  ASSERT_EQ(shardc_output_code(model.get()), 0);
  std::string text = toText(shardc_output_bytes(model.get()));
  Output plan = compile(text, {{"microbatches", "2"}}, /*explain=*/true);
  ASSERT_EQ(shardc_output_code(plan.get()), 0)
      << toText(shardc_output_diagnostics(plan.get()));
  json::Value report = parse(shardc_output_report(plan.get()));
  const json::Object &object = *report.getAsObject();
  EXPECT_EQ(object.getInteger("num_devices"), 2);
  EXPECT_EQ(object.getObject("compile_options")->getInteger("microbatches"), 2);
  EXPECT_FALSE(object.getArray("collectives")->empty());
  EXPECT_FALSE(object.getArray("shardings")->empty());
  EXPECT_NE(object.get("explanation"), nullptr);
  EXPECT_NE(toText(shardc_output_explanation(plan.get())).find("remove by"),
            std::string::npos)
      << toText(shardc_output_explanation(plan.get()));

  // The same report of the plan alone.
  shardc_bytes bytes = shardc_output_bytes(plan.get());
  Output again(shardc_describe_plan(bytes.data, bytes.size));
  EXPECT_EQ(shardc_output_code(again.get()), 0);
  EXPECT_EQ(toText(shardc_output_explanation(again.get())),
            toText(shardc_output_explanation(plan.get())));
}

TEST(CompilerCAPITest, SaysWhereAnErrorIs) {
  Output plan = compile("module {\n  func.func @f() { nonsense }\n}\n");
  EXPECT_EQ(shardc_output_code(plan.get()), 2);
  EXPECT_EQ(shardc_output_bytes(plan.get()).size, 0u);
  json::Value messages = parse(shardc_output_messages(plan.get()));
  ASSERT_EQ(messages.getAsArray()->size(), 1u);
  const json::Object &error = *messages.getAsArray()->front().getAsObject();
  EXPECT_EQ(error.getString("severity"), "error");
  EXPECT_EQ(error.getString("file"), "m.mlir");
  EXPECT_EQ(error.getInteger("line"), 2);
  EXPECT_EQ(error.getInteger("column"), 20);
  EXPECT_NE(toText(shardc_output_diagnostics(plan.get())).find("m.mlir:2:20"),
            std::string::npos);
  std::string deep(1000, '[');
  EXPECT_EQ(firstMessage(compile(deep)),
            "more than 256 brackets are open here");
}

TEST(CompilerCAPITest, RefusesOptions) {
  Output plan = compile("module {}", {{"partitoin", "follow"}});
  EXPECT_EQ(shardc_output_code(plan.get()), 1);
  EXPECT_EQ(firstMessage(plan),
            "unknown option 'partitoin'; did you mean 'partition'?");
  EXPECT_EQ(firstMessage(compile("module {}", {{"gap", "2"}})),
            "--gap: '2' is not a number of at least 0 and less than 1");
  EXPECT_EQ(firstMessage(compile("module {}", {{"mesh", "data"}})).substr(0, 6),
            "--mesh");
  EXPECT_EQ(firstMessage(writeMlp({{"layers", "4,x"}})),
            "layers: 'x' is not an integer");
  EXPECT_EQ(firstMessage(writeMlp({{"layer", "4"}})),
            "unknown option 'layer'; did you mean 'layers'?");
  EXPECT_EQ(firstMessage(writeMlp({{"layers", "4"}})),
            "layers: expected at least two sizes, such as 10,32,16,1");
  EXPECT_EQ(firstMessage(writeMlp({{"layers", "4,2"}, {"layer-norm", "on"}})),
            "layer-norm: 'on' is not 0 or 1");
  Output damaged(shardc_describe_plan("SHRD", 4));
  EXPECT_EQ(shardc_output_code(damaged.get()), 2);
}

TEST(CompilerCAPITest, ListsOptions) {
  Output output(shardc_list_options());
  json::Value lists = parse(shardc_output_bytes(output.get()));
  const json::Array &compile = *lists.getAsObject()->getArray("compile");
  const json::Object &mesh = *compile.front().getAsObject();
  EXPECT_EQ(mesh.getString("name"), "mesh");
  EXPECT_EQ(mesh.getString("type"), "str");
  EXPECT_EQ(mesh.getString("default"), "the model's");
  EXPECT_EQ(lists.getAsObject()->getArray("mlp")->front(), "layers");
}

} // namespace
