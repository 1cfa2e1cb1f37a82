//===- ExecutorHandle.cpp - Contexts, executors and results for C ---------===//

#include "base/ArrayBytes.h"
#include "capi/Errors.h"
#include "capi/PlanHandle.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Trainer.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;
using namespace shardc::rt::capi;

struct shardc_context {
  std::shared_ptr<Context> context;
};

/// The executor goes away before its context.
struct shardc_executor {
  std::shared_ptr<Context> context;
  std::unique_ptr<Executor> executor;
};

struct shardc_result {
  RunResult result;
};

shardc_error *shardc_context_create(int32_t threads, shardc_context **context) {
  return guard([&]() -> absl::Status {
    if (!context)
      return isNull("context");
    *context = nullptr;
    absl::StatusOr<std::unique_ptr<Context>> made = Context::create({threads});
    if (!made.ok())
      return made.status();
    *context = new shardc_context{*std::move(made)};
    return absl::OkStatus();
  });
}

void shardc_context_free(shardc_context *context) { delete context; }

shardc_error *shardc_executor_create(shardc_context *context,
                                     const shardc_plan *plan,
                                     const shardc_executor_options *options,
                                     shardc_executor **executor) {
  return guard([&]() -> absl::Status {
    if (!context || !plan || !executor)
      return isNull(!context ? "context" : !plan ? "plan" : "executor");
    *executor = nullptr;
    absl::StatusOr<shardc_executor_options> given = take(options);
    if (!given.ok())
      return given.status();
    ExecutorOptions chosen;
    chosen.seed = given->seed;
    chosen.poisonPadding = given->poison_padding != 0;
    chosen.shareReplicas = given->keep_replicas == 0;
    chosen.orderedSums = given->ordered_sums != 0;
    if (given->cpu_target)
      chosen.cpuTarget = given->cpu_target;
    absl::StatusOr<std::unique_ptr<Executor>> made =
        Executor::create(*context->context, plan->plan, std::move(chosen));
    if (!made.ok())
      return made.status();
    *executor = new shardc_executor{context->context, *std::move(made)};
    return absl::OkStatus();
  });
}

void shardc_executor_free(shardc_executor *executor) { delete executor; }

shardc_error *shardc_executor_initialize(shardc_executor *executor) {
  return guard([&] {
    return executor ? executor->executor->initializeParameters()
                    : isNull("executor");
  });
}

/// The array of `array`, whose name is `name`, once its bytes are those of its
/// type and shape.
static absl::StatusOr<ArrayView> viewOf(const shardc_array &array) {
  if (!array.name)
    return isNull("array.name");
  std::string what = absl::StrCat("array \"", array.name, "\"");
  if (array.dtype < SHARDC_F32 || array.dtype > SHARDC_BOOL)
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has the unknown element type ", array.dtype,
                     "; expected ", SHARDC_F32, " to ", SHARDC_BOOL));
  if (array.num_dims < 0 || (array.num_dims > 0 && !array.shape))
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", array.num_dims, " dimensions and ",
                     array.shape ? "a" : "no", " shape"));
  ArrayView view = {static_cast<DType>(array.dtype),
                    absl::MakeConstSpan(array.shape, array.num_dims),
                    array.data};
  absl::Status status =
      checkBytes(array.name, view.dtype, view.shape, array.bytes);
  return status.ok() ? absl::StatusOr<ArrayView>(view) : status;
}

shardc_error *shardc_executor_set_tensor(shardc_executor *executor,
                                         const shardc_array *array) {
  return guard([&] {
    if (!executor || !array)
      return isNull(executor ? "array" : "executor");
    absl::StatusOr<ArrayView> view = viewOf(*array);
    return view.ok() ? executor->executor->setTensor(array->name, *view)
                     : view.status();
  });
}

shardc_error *shardc_executor_get_tensor(const shardc_executor *executor,
                                         const char *name, void *data,
                                         size_t bytes) {
  return guard([&] {
    if (!executor || !name || !data)
      return isNull(!executor ? "executor" : !name ? "name" : "data");
    const TensorInfo *tensor = executor->executor->plan().findTensor(name);
    if (!tensor)
      return absl::NotFoundError(
          absl::StrCat("the plan has no tensor \"", name, "\""));
    size_t expected = numElements(tensor->shape) * byteSize(tensor->dtype);
    if (bytes != expected)
      return absl::InvalidArgumentError(absl::StrCat(
          "there is room for ", bytes, " bytes of tensor \"", name, "\", but ",
          describe(tensor->dtype, tensor->shape), " takes ", expected));
    return executor->executor->readTensor(name, data);
  });
}

shardc_error *shardc_executor_load_parameters(shardc_executor *executor,
                                              const char *path) {
  return guard([&] {
    if (!executor || !path)
      return isNull(executor ? "path" : "executor");
    return loadParameters(*executor->executor, path);
  });
}

shardc_error *shardc_executor_save_parameters(const shardc_executor *executor,
                                              const char *path) {
  return guard([&] {
    if (!executor || !path)
      return isNull(executor ? "path" : "executor");
    return saveParameters(*executor->executor, path);
  });
}

/// The arrays by their names.
static absl::StatusOr<NamedArrays> viewsOf(const shardc_array *inputs,
                                           size_t numInputs) {
  if (numInputs && !inputs)
    return isNull("inputs");
  NamedArrays arrays;
  for (size_t i = 0; i < numInputs; ++i) {
    absl::StatusOr<ArrayView> view = viewOf(inputs[i]);
    if (!view.ok())
      return view.status();
    if (!arrays.emplace(inputs[i].name, *view).second)
      return absl::InvalidArgumentError(
          absl::StrCat("array \"", inputs[i].name, "\" is given twice"));
  }
  return arrays;
}

static absl::StatusOr<RunResult> run(shardc_executor *executor,
                                     const char *program,
                                     const shardc_array *inputs,
                                     size_t numInputs) {
  if (!executor || !program)
    return isNull(executor ? "program" : "executor");
  absl::StatusOr<NamedArrays> arrays = viewsOf(inputs, numInputs);
  return arrays.ok() ? executor->executor->run(program, *arrays)
                     : arrays.status();
}

shardc_error *shardc_executor_run(shardc_executor *executor,
                                  const char *program,
                                  const shardc_array *inputs, size_t numInputs,
                                  shardc_result **result) {
  return guard([&]() -> absl::Status {
    if (!result)
      return isNull("result");
    *result = nullptr;
    absl::StatusOr<RunResult> ran = run(executor, program, inputs, numInputs);
    if (!ran.ok())
      return ran.status();
    *result = new shardc_result{*std::move(ran)};
    return absl::OkStatus();
  });
}

shardc_error *shardc_executor_step(shardc_executor *executor,
                                   const shardc_array *inputs, size_t numInputs,
                                   double *loss) {
  return guard([&]() -> absl::Status {
    absl::StatusOr<RunResult> ran =
        run(executor, "train_step", inputs, numInputs);
    if (ran.ok() && loss)
      *loss = ran->loss;
    return ran.status();
  });
}

shardc_error *shardc_executor_predict(shardc_executor *executor,
                                      const shardc_array *inputs,
                                      size_t numInputs,
                                      shardc_result **result) {
  return guard([&]() -> absl::Status {
    if (!executor || !result)
      return isNull(executor ? "result" : "executor");
    *result = nullptr;
    absl::StatusOr<NamedArrays> arrays = viewsOf(inputs, numInputs);
    if (!arrays.ok())
      return arrays.status();
    absl::StatusOr<HostArray> outputs = predict(*executor->executor, *arrays);
    if (!outputs.ok())
      return outputs.status();
    RunResult made;
    made.add("prediction", *std::move(outputs));
    *result = new shardc_result{std::move(made)};
    return absl::OkStatus();
  });
}

shardc_error *shardc_result_get_info(const shardc_result *result,
                                     shardc_run_info *info) {
  return guard([&] {
    if (!result)
      return isNull("result");
    shardc_run_info value = {};
    value.loss = result->result.loss;
    value.seconds = result->result.seconds;
    value.communication_seconds = result->result.communicationSeconds;
    value.wire_bytes = result->result.wireBytes;
    value.num_arrays = result->result.results.size();
    return give(value, info, "info");
  });
}

shardc_error *shardc_result_get_array(const shardc_result *result,
                                      size_t number, shardc_array *array) {
  return guard([&] {
    if (!result || !array)
      return isNull(result ? "array" : "result");
    if (number >= result->result.results.size())
      return isNoNumber("result", number, result->result.results.size());
    const auto &[name, found] = result->result.results[number];
    array->name = name.c_str();
    array->shape = found.shape.data();
    array->data = found.data.data();
    array->bytes = found.data.size();
    array->dtype = static_cast<shardc_dtype>(found.dtype);
    array->num_dims = found.shape.size();
    return absl::OkStatus();
  });
}

void shardc_result_free(shardc_result *result) { delete result; }
