//===- CApiTest.cpp - The C API, out of the shared library ----------------===//

#include "../TemporaryFolder.h"
#include "../TestPlan.h"

#include "shardc-rt/Errors.h"
#include "shardc-rt/Version.h"
#include "shardc-rt/c.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace shardc::rt;

namespace {

/// Frees the error; returns its code.
shardc_code codeOf(shardc_error *error) {
  shardc_code code = shardc_error_code(error);
  shardc_error_free(error);
  return code;
}

/// Frees the error; returns its message.
std::string messageOf(shardc_error *error) {
  std::string message = shardc_error_message(error);
  shardc_error_free(error);
  return message;
}

#define EXPECT_FINE(call) EXPECT_EQ(messageOf(call), "")
#define EXPECT_CODE(call, code) EXPECT_EQ(codeOf(call), code)

/// A structure of the caller's version.
template <typename T>
T sized() {
  T value = {};
  value.struct_size = sizeof(T);
  return value;
}

/// A plan with x [12] sharded over two devices, and an executor of it.
class CApiTest : public testing::Test {
protected:
  void SetUp() override {
    std::string bytes = test::makePlan(2);
    ASSERT_EQ(messageOf(shardc_plan_parse(bytes.data(), bytes.size(), &plan)),
              "");
    ASSERT_EQ(messageOf(shardc_context_create(2, &context)), "");
    ASSERT_EQ(
        messageOf(shardc_executor_create(context, plan, nullptr, &executor)),
        "");
  }

  void TearDown() override {
    // In an order of no use to the executor, which keeps what it needs.
    shardc_context_free(context);
    shardc_plan_free(plan);
    shardc_executor_free(executor);
  }

  shardc_array x() {
    return {"x", shape.data(), data.data(), 48, SHARDC_F32, 1};
  }

  std::vector<int64_t> shape = {12};
  std::vector<float> data = std::vector<float>(12, 1);
  shardc_plan *plan = nullptr;
  shardc_context *context = nullptr;
  shardc_executor *executor = nullptr;
};

TEST_F(CApiTest, AnswersQueries) {
  EXPECT_STREQ(shardc_version(), SHARDC_RT_VERSION_STRING);
  auto info = sized<shardc_plan_info>();
  EXPECT_FINE(shardc_plan_get_info(plan, &info));
  EXPECT_STREQ(info.model, "test");
  EXPECT_STREQ(info.mesh, "d=2");
  EXPECT_EQ(info.num_devices, 2);
  EXPECT_EQ(info.batch_size, 12);
  EXPECT_EQ(info.num_tensors, 3u);
  EXPECT_EQ(info.num_programs, 1u);
  EXPECT_EQ(info.is_for_gpu, 0);
  EXPECT_NE(info.fingerprint, 0u);
  auto axis = sized<shardc_axis_info>();
  EXPECT_FINE(shardc_plan_get_axis(plan, 0, &axis));
  EXPECT_STREQ(axis.name, "d");
  EXPECT_EQ(axis.size, 2);
  auto tensor = sized<shardc_tensor_info>();
  EXPECT_FINE(shardc_plan_find_tensor(plan, "x", &tensor));
  EXPECT_EQ(tensor.role, SHARDC_INPUT);
  EXPECT_EQ(tensor.dtype, SHARDC_F32);
  ASSERT_EQ(tensor.num_dims, 1);
  EXPECT_EQ(tensor.shape[0], 12);
  EXPECT_EQ(tensor.shard_shape[0], 6);
  ASSERT_EQ(tensor.num_axes[0], 1);
  EXPECT_STREQ(tensor.axes[0], "d");
  EXPECT_EQ(tensor.bytes, 48u);
  EXPECT_FINE(shardc_plan_get_tensor(plan, 0, &tensor));
  EXPECT_STREQ(tensor.name, "w");
  EXPECT_EQ(tensor.role, SHARDC_PARAMETER);
  EXPECT_EQ(tensor.num_axes[0], 0);
  auto program = sized<shardc_program_info>();
  EXPECT_FINE(shardc_plan_get_program(plan, 0, &program));
  EXPECT_STREQ(program.name, "train_step");
  EXPECT_EQ(program.num_results, 3u);

  EXPECT_CODE(shardc_plan_get_axis(plan, 1, &axis), SHARDC_NOT_FOUND);
  EXPECT_CODE(shardc_plan_get_tensor(plan, 3, &tensor), SHARDC_NOT_FOUND);
  EXPECT_CODE(shardc_plan_get_program(plan, 1, &program), SHARDC_NOT_FOUND);
  EXPECT_CODE(shardc_plan_find_tensor(plan, "y", &tensor), SHARDC_NOT_FOUND);
  auto collective = sized<shardc_collective_info>();
  EXPECT_CODE(shardc_plan_get_collective(plan, 0, 1000, &collective),
              SHARDC_NOT_FOUND);
}

TEST(CApiPlanTest, HasTheLinesOfTheCommunicationReport) {
  std::string bytes = test::makePlan(2, [](fb::PlanT &plan) {
    auto line = std::make_unique<fb::CollectiveReportT>();
    line->kind = fb::CollectiveKind::AllGather;
    line->axes = {"d"};
    line->group_size = 2;
    line->bytes = 48;
    line->wire_bytes = 24;
    line->source = "model.mlir:3:4";
    for (int i = 0; i < 2; ++i)
      plan.programs[0]->collectives.push_back(
          std::make_unique<fb::CollectiveReportT>(*line));
    plan.programs[0]->collectives[1]->kind = fb::CollectiveKind::Send;
  });
  shardc_plan *plan = nullptr;
  ASSERT_EQ(messageOf(shardc_plan_parse(bytes.data(), bytes.size(), &plan)),
            "");
  auto info = sized<shardc_collective_info>();
  EXPECT_FINE(shardc_plan_get_collective(plan, 0, 0, &info));
  EXPECT_STREQ(info.kind, "all_gather");
  ASSERT_EQ(info.num_axes, 1);
  EXPECT_STREQ(info.axes[0], "d");
  EXPECT_EQ(info.group_size, 2);
  EXPECT_EQ(info.bytes, 48u);
  EXPECT_EQ(info.wire_bytes, 24u);
  EXPECT_EQ(info.runs, 1);
  EXPECT_STREQ(info.part, "forward");
  EXPECT_STREQ(info.source, "model.mlir:3:4");
  EXPECT_STREQ(info.cause, "");
  EXPECT_EQ(info.rank, -1);
  EXPECT_FINE(shardc_plan_get_collective(plan, 0, 1, &info));
  EXPECT_STREQ(info.kind, "send");
  shardc_plan_free(plan);
}

TEST_F(CApiTest, TrainsSetsAndReads) {
  shardc_array input = x();
  double loss = -1;
  // Nothing has values yet.
  EXPECT_CODE(shardc_executor_step(executor, &input, 1, &loss),
              SHARDC_FAILED_PRECONDITION);
  EXPECT_FINE(shardc_executor_initialize(executor));
  EXPECT_FINE(shardc_executor_step(executor, &input, 1, nullptr));
  shardc_result *result = nullptr;
  EXPECT_FINE(shardc_executor_run(executor, "train_step", &input, 1, &result));
  auto info = sized<shardc_run_info>();
  EXPECT_FINE(shardc_result_get_info(result, &info));
  EXPECT_EQ(info.num_arrays, 3u);
  EXPECT_GT(info.seconds, 0);
  shardc_array y;
  EXPECT_FINE(shardc_result_get_array(result, 1, &y));
  EXPECT_STREQ(y.name, "y");
  EXPECT_EQ(y.dtype, SHARDC_F32);
  ASSERT_EQ(y.num_dims, 1);
  EXPECT_EQ(y.shape[0], 12);
  EXPECT_EQ(y.bytes, 48u);
  // 2x, plus the coordinate of the device.
  EXPECT_EQ(static_cast<const float *>(y.data)[0], 2);
  EXPECT_EQ(static_cast<const float *>(y.data)[11], 3);
  EXPECT_CODE(shardc_result_get_array(result, 3, &y), SHARDC_NOT_FOUND);
  shardc_result_free(result);

  test::TemporaryFolder folder;
  std::string file = folder / "w.safetensors";
  std::vector<float> w = {1, 2, 3, 4}, read(4);
  shardc_array array = {"w", shape.data(), w.data(), 16, SHARDC_F32, 1};
  shape[0] = 4;
  EXPECT_FINE(shardc_executor_set_tensor(executor, &array));
  EXPECT_FINE(shardc_executor_save_parameters(executor, file.c_str()));
  EXPECT_FINE(shardc_executor_initialize(executor));
  EXPECT_FINE(shardc_executor_load_parameters(executor, file.c_str()));
  EXPECT_FINE(shardc_executor_get_tensor(executor, "w", read.data(), 16));
  EXPECT_EQ(read, w);
}

TEST_F(CApiTest, PredictsForAnyNumberOfRows) {
  std::string bytes = test::makePlan(2, test::addPrediction);
  shardc_plan *predicting = nullptr;
  shardc_executor *made = nullptr;
  ASSERT_EQ(
      messageOf(shardc_plan_parse(bytes.data(), bytes.size(), &predicting)),
      "");
  ASSERT_EQ(
      messageOf(shardc_executor_create(context, predicting, nullptr, &made)),
      "");
  for (int64_t rows = 1; rows <= 25; ++rows) {
    std::vector<int64_t> sizes = {rows};
    std::vector<float> values(rows);
    for (int64_t row = 0; row < rows; ++row)
      values[row] = row;
    shardc_array input = {
        "x", sizes.data(), values.data(), 4 * values.size(), SHARDC_F32, 1};
    shardc_result *result = nullptr;
    if (rows == 1) {
      // Nothing has values yet.
      EXPECT_CODE(shardc_executor_predict(made, &input, 1, &result),
                  SHARDC_FAILED_PRECONDITION);
      EXPECT_EQ(result, nullptr);
      EXPECT_FINE(shardc_executor_initialize(made));
    }
    EXPECT_FINE(shardc_executor_predict(made, &input, 1, &result));
    auto info = sized<shardc_run_info>();
    EXPECT_FINE(shardc_result_get_info(result, &info));
    EXPECT_EQ(info.num_arrays, 1u);
    EXPECT_TRUE(std::isnan(info.loss));
    shardc_array outputs;
    ASSERT_EQ(messageOf(shardc_result_get_array(result, 0, &outputs)), "");
    EXPECT_STREQ(outputs.name, "prediction");
    EXPECT_EQ(outputs.dtype, SHARDC_F32);
    ASSERT_EQ(outputs.num_dims, 1);
    ASSERT_EQ(outputs.shape[0], rows);
    // 2x, plus the coordinate of the device: the second has the latter half.
    for (int64_t row = 0; row < rows; ++row)
      EXPECT_EQ(static_cast<const float *>(outputs.data)[row],
                2 * row + (row % 12 >= 6));
    shardc_result_free(result);
  }

  shardc_result *result = nullptr;
  auto errorOf = [&](shardc_array array) {
    return messageOf(shardc_executor_predict(made, &array, 1, &result));
  };
  shardc_array array = x();
  array.name = "z";
  EXPECT_EQ(errorOf(array), "the plan has no input or label \"z\"");
  array.name = "w";
  EXPECT_EQ(errorOf(array), "the plan has no input or label \"w\"");
  array = x();
  array.data = nullptr;
  EXPECT_EQ(errorOf(array), "array \"x\" is f32[12] without data");
  array = x();
  array.bytes = 44;
  EXPECT_EQ(errorOf(array), "array \"x\" has 44 bytes, but f32[12] takes 48");
  int64_t two[] = {6, 2};
  array = x();
  array.shape = two;
  array.num_dims = 2;
  EXPECT_EQ(errorOf(array),
            "the data, array \"x\" is f32[6,2], but the model's input is "
            "f32[12] (the rows of a batch first)");
  int64_t none[] = {0};
  array = {"x", none, nullptr, 0, SHARDC_F32, 1};
  EXPECT_EQ(errorOf(array), "the data has no rows to predict for");
  EXPECT_EQ(messageOf(shardc_executor_predict(made, nullptr, 0, &result)),
            "the data: array \"x\" is missing; the model's input is f32[12], "
            "the data has no arrays");
  EXPECT_EQ(result, nullptr);
  // The plan without the program.
  array = x();
  EXPECT_FINE(shardc_executor_initialize(executor));
  EXPECT_CODE(shardc_executor_predict(executor, &array, 1, &result),
              SHARDC_NOT_FOUND);
  shardc_executor_free(made);
  shardc_plan_free(predicting);
}

TEST_F(CApiTest, RefusesNull) {
  const shardc_code bad = SHARDC_INVALID_ARGUMENT;
  shardc_array array = x();
  auto info = sized<shardc_plan_info>();
  auto run = sized<shardc_run_info>();
  shardc_result *result = nullptr;
  float room[4];
  EXPECT_CODE(shardc_plan_load(nullptr, &plan), bad);
  EXPECT_CODE(shardc_plan_load("x", nullptr), bad);
  EXPECT_CODE(shardc_plan_parse(nullptr, 1, &plan), bad);
  EXPECT_CODE(shardc_plan_get_info(nullptr, &info), bad);
  EXPECT_CODE(shardc_plan_get_info(plan, nullptr), bad);
  EXPECT_CODE(shardc_plan_get_axis(nullptr, 0, nullptr), bad);
  EXPECT_CODE(shardc_plan_get_tensor(nullptr, 0, nullptr), bad);
  EXPECT_CODE(shardc_plan_find_tensor(plan, nullptr, nullptr), bad);
  EXPECT_CODE(shardc_plan_get_program(nullptr, 0, nullptr), bad);
  EXPECT_CODE(shardc_plan_get_collective(nullptr, 0, 0, nullptr), bad);
  EXPECT_CODE(shardc_context_create(1, nullptr), bad);
  EXPECT_CODE(shardc_executor_create(nullptr, plan, nullptr, nullptr), bad);
  EXPECT_CODE(shardc_executor_create(context, nullptr, nullptr, nullptr), bad);
  EXPECT_CODE(shardc_executor_create(context, plan, nullptr, nullptr), bad);
  EXPECT_CODE(shardc_executor_initialize(nullptr), bad);
  EXPECT_CODE(shardc_executor_set_tensor(nullptr, &array), bad);
  EXPECT_CODE(shardc_executor_set_tensor(executor, nullptr), bad);
  EXPECT_CODE(shardc_executor_get_tensor(executor, nullptr, room, 16), bad);
  EXPECT_CODE(shardc_executor_get_tensor(executor, "w", nullptr, 16), bad);
  EXPECT_CODE(shardc_executor_load_parameters(executor, nullptr), bad);
  EXPECT_CODE(shardc_executor_save_parameters(nullptr, "x.npz"), bad);
  EXPECT_CODE(shardc_executor_run(nullptr, "train_step", &array, 1, &result),
              bad);
  EXPECT_CODE(shardc_executor_run(executor, nullptr, &array, 1, &result), bad);
  EXPECT_CODE(shardc_executor_run(executor, "train_step", &array, 1, nullptr),
              bad);
  EXPECT_EQ(messageOf(shardc_executor_step(executor, nullptr, 1, nullptr)),
            "the argument 'inputs' is null");
  EXPECT_CODE(shardc_executor_predict(nullptr, &array, 1, &result), bad);
  EXPECT_CODE(shardc_executor_predict(executor, &array, 1, nullptr), bad);
  EXPECT_CODE(shardc_executor_predict(executor, nullptr, 1, &result), bad);
  EXPECT_CODE(shardc_result_get_info(nullptr, &run), bad);
  EXPECT_CODE(shardc_result_get_array(nullptr, 0, &array), bad);
  shardc_error_free(nullptr);
  shardc_plan_free(nullptr);
  shardc_context_free(nullptr);
  shardc_executor_free(nullptr);
  shardc_result_free(nullptr);
  EXPECT_EQ(shardc_error_code(nullptr), SHARDC_OK);
}

TEST_F(CApiTest, RefusesWrongInputs) {
  EXPECT_FINE(shardc_executor_initialize(executor));
  auto errorOf = [&](shardc_array array) {
    return messageOf(shardc_executor_step(executor, &array, 1, nullptr));
  };
  shardc_array array = x();
  array.dtype = SHARDC_I32;
  EXPECT_NE(errorOf(array).find("i32[12]"), std::string::npos)
      << errorOf(array);
  array.dtype = 6;
  EXPECT_EQ(errorOf(array), "array \"x\" has the unknown element type 6; "
                            "expected 0 to 5");
  array = x();
  array.bytes = 44;
  EXPECT_EQ(errorOf(array), "array \"x\" has 44 bytes, but f32[12] takes 48");
  array = x();
  array.num_dims = -1;
  EXPECT_EQ(errorOf(array), "array \"x\" has -1 dimensions and a shape");
  array.num_dims = 1;
  array.shape = nullptr;
  EXPECT_EQ(errorOf(array), "array \"x\" has 1 dimensions and no shape");
  int64_t sizes[] = {int64_t(1) << 40, int64_t(1) << 40};
  array.shape = sizes;
  array.num_dims = 2;
  EXPECT_EQ(errorOf(array),
            "array \"x\" has a dimension of size 1099511627776");
  array = x();
  array.data = nullptr;
  EXPECT_NE(errorOf(array), "");
  array = x();
  array.name = "z";
  EXPECT_NE(errorOf(array), "");
  shardc_array twice[] = {x(), x()};
  EXPECT_EQ(messageOf(shardc_executor_step(executor, twice, 2, nullptr)),
            "array \"x\" is given twice");
  EXPECT_NE(messageOf(shardc_executor_step(executor, nullptr, 0, nullptr)), "");
  shardc_result *result = nullptr;
  EXPECT_CODE(shardc_executor_run(executor, "test", twice, 1, &result),
              SHARDC_NOT_FOUND);
  EXPECT_EQ(result, nullptr);
  float room[4];
  EXPECT_EQ(messageOf(shardc_executor_get_tensor(executor, "w", room, 12)),
            "there is room for 12 bytes of tensor \"w\", but f32[4] takes 16");
  EXPECT_CODE(shardc_executor_get_tensor(executor, "v", room, 16),
              SHARDC_NOT_FOUND);
  EXPECT_CODE(shardc_executor_load_parameters(executor, "/no/such.npz"),
              SHARDC_NOT_FOUND);
  EXPECT_CODE(shardc_plan_load("/no/such.shardc", &plan), SHARDC_NOT_FOUND);
}

TEST(CApiPlanTest, RefusesDamagedPlans) {
  std::string bytes = test::makePlan(2);
  shardc_plan *plan = nullptr;
  EXPECT_CODE(shardc_plan_parse(bytes.data(), 100, &plan), SHARDC_DATA_LOSS);
  EXPECT_EQ(plan, nullptr);
  shardc_context *context = nullptr;
  EXPECT_CODE(shardc_context_create(-1, &context), SHARDC_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
}

/// Structures as programs of other versions have them.
TEST_F(CApiTest, KnowsVersionsOfStructures) {
  shardc_plan_info none = {};
  EXPECT_NE(messageOf(shardc_plan_get_info(plan, &none)), "");
  none.struct_size = sizeof none - 1;
  EXPECT_CODE(shardc_plan_get_info(plan, &none), SHARDC_INVALID_ARGUMENT);
  struct {
    shardc_plan_info known;
    int64_t unknown;
  } newer = {{}, -1};
  newer.known.struct_size = sizeof newer;
  EXPECT_FINE(shardc_plan_get_info(plan, &newer.known));
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_STREQ(newer.known.mesh, "d=2");
  EXPECT_EQ(newer.unknown, 0);

  struct {
    shardc_executor_options known;
    int64_t unknown;
  } options = {{}, 0};
  options.known.struct_size = sizeof options;
  options.known.seed = 3;
  options.known.poison_padding = 1;
  options.known.keep_replicas = 1;
  options.known.ordered_sums = 1;
  shardc_executor *made = nullptr;
  EXPECT_FINE(shardc_executor_create(context, plan, &options.known, &made));
  shardc_executor_free(made);
  options.unknown = 1;
  EXPECT_CODE(shardc_executor_create(context, plan, &options.known, &made),
              SHARDC_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  options.known.struct_size = 4;
  EXPECT_CODE(shardc_executor_create(context, plan, &options.known, &made),
              SHARDC_INVALID_ARGUMENT);
  options.known.struct_size = sizeof options.known;
  options.known.cpu_target = "x86-64-v9";
  EXPECT_CODE(shardc_executor_create(context, plan, &options.known, &made),
              SHARDC_INVALID_ARGUMENT);
}

TEST(CApiPlanTest, IsFoundByDlsymUnderItsVersion) {
  void *library = dlopen(RUNTIME_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  void *symbol = dlvsym(library, "shardc_version", "SHARDC_C_1.0");
  ASSERT_NE(symbol, nullptr) << dlerror();
  EXPECT_EQ(symbol, dlsym(library, "shardc_version"));
  EXPECT_NE(dlvsym(library, "shardc_executor_predict", "SHARDC_C_1.1"),
            nullptr);
  EXPECT_STREQ(reinterpret_cast<decltype(&shardc_version)>(symbol)(),
               SHARDC_RT_VERSION_STRING);
  dlclose(library);
}

} // namespace
