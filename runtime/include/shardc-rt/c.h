//===- c.h - The runtime for C ------------------------------------*- C -*-===//
//
// Loads plans and runs them on virtual CPU devices, from C or from anything
// that calls C functions. libShardcRuntime.so exports these functions; they may
// be linked or looked up by dlsym. docs/Embedding.md has an example.
//
// Errors. A function that can fail returns null, or an error that the caller
// frees. Then it has changed nothing but what is said of the C++ functions
// (Executor.h), and its results are null or unchanged. No exception leaves a
// function. A null handle, or a null pointer for a result, is an error of code
// SHARDC_INVALID_ARGUMENT. The functions `..._free` ignore null.
//
// Handles. Each is freed once, in any order: an executor keeps the context and
// the plan that it needs. Texts and arrays that functions return by pointer are
// borrowed from the handle, until it is freed.
//
// Versions. Structures begin with `struct_size`, which the caller sets to their
// sizeof. A library that is newer than the program fills or reads as much as
// the program knows; one that is older leaves the rest zero, and refuses a
// field that it does not know and that is not zero. The names of the functions
// have versions (SHARDC_C_1.0, and SHARDC_C_1.1 of shardc_executor_predict),
// which stay in later libraries.
//
// Thread-safety: as in C++. A plan is immutable, and threads may share one; an
// executor takes one call at a time, from any thread. Different executors may
// be used at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_C_H
#define SHARDC_RT_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDC_C_API __attribute__((visibility("default")))
/// The result must not be ignored: it is an error, or null.
#define SHARDC_C_CHECK __attribute__((warn_unused_result))

/// "MAJOR.MINOR.PATCH" of the library.
SHARDC_C_API const char *shardc_version(void);

//===- Errors -------------------------------------------------------------===//

/// The codes of Abseil; Errors.h says what they mean.
typedef int32_t shardc_code;
enum {
  SHARDC_OK = 0,
  SHARDC_CANCELLED = 1,
  SHARDC_UNKNOWN = 2,
  SHARDC_INVALID_ARGUMENT = 3,
  SHARDC_DEADLINE_EXCEEDED = 4,
  SHARDC_NOT_FOUND = 5,
  SHARDC_ALREADY_EXISTS = 6,
  SHARDC_PERMISSION_DENIED = 7,
  SHARDC_RESOURCE_EXHAUSTED = 8,
  SHARDC_FAILED_PRECONDITION = 9,
  SHARDC_ABORTED = 10,
  SHARDC_OUT_OF_RANGE = 11,
  SHARDC_UNIMPLEMENTED = 12,
  SHARDC_INTERNAL = 13,
  SHARDC_UNAVAILABLE = 14,
  SHARDC_DATA_LOSS = 15,
  SHARDC_UNAUTHENTICATED = 16
};

typedef struct shardc_error shardc_error;

/// SHARDC_OK and "" of null.
SHARDC_C_API shardc_code shardc_error_code(const shardc_error *error);
SHARDC_C_API const char *shardc_error_message(const shardc_error *error);
SHARDC_C_API void shardc_error_free(shardc_error *error);

//===- Plans --------------------------------------------------------------===//

typedef struct shardc_plan shardc_plan;

typedef int32_t shardc_dtype;
enum {
  SHARDC_F32 = 0,
  SHARDC_BF16 = 1,
  SHARDC_F64 = 2,
  SHARDC_I32 = 3,
  SHARDC_I64 = 4,
  SHARDC_BOOL = 5
};

typedef int32_t shardc_role;
enum {
  SHARDC_PARAMETER = 0,
  SHARDC_STATE = 1,
  SHARDC_INPUT = 2,
  SHARDC_LABEL = 3
};

typedef struct shardc_plan_info {
  size_t struct_size;
  const char *model;    ///< The name of the model.
  const char *producer; ///< The compiler that wrote the plan.
  const char *target;   ///< "x86-64-v3", for example.
  const char *mesh;     ///< "data=4,model=2".
  uint64_t fingerprint; ///< A hash of the plan.
  int64_t num_devices;
  int64_t batch_size;   ///< Rows.
  uint64_t arena_bytes; ///< Of each device.
  size_t num_axes;
  size_t num_tensors;
  size_t num_programs;
  int32_t is_for_gpu; ///< Executors of this API run plans for CPUs alone.
  int32_t reserved;
} shardc_plan_info;

/// An axis of the mesh.
typedef struct shardc_axis_info {
  size_t struct_size;
  const char *name;
  int64_t size;
} shardc_axis_info;

/// A tensor that a host sets or reads, as a global array.
typedef struct shardc_tensor_info {
  size_t struct_size;
  const char *name;
  shardc_role role;
  shardc_dtype dtype;
  /// Global, `num_dims` sizes; the first of inputs and labels is the batch.
  const int64_t *shape;
  const int64_t *shard_shape; ///< Of a device, padding included.
  /// The number of axes that shard each dimension, and their names, of all
  /// dimensions in order, major to minor.
  const int32_t *num_axes;
  const char *const *axes;
  int64_t label_classes; ///< Labels are in [0, label_classes); 0: any.
  uint64_t bytes;        ///< Of the global array.
  int32_t num_dims;
  int32_t reserved;
} shardc_tensor_info;

/// A program: "train_step", "evaluate" where the model can be evaluated, and
/// "predict" where its loss is computed from one output of the network.
typedef struct shardc_program_info {
  size_t struct_size;
  const char *name;
  uint64_t wire_bytes;   ///< That a device sends in one run.
  uint64_t matmul_flops; ///< That a device does in one run.
  size_t num_results;
  size_t num_collectives;
} shardc_program_info;

/// A collective, or a send between the stages of a pipeline; bytes per device.
typedef struct shardc_collective_info {
  size_t struct_size;
  const char *kind; ///< "all_reduce", "all_gather", ...
  const char *part; ///< "forward", "backward" or "update".
  const char *source;
  const char *cause;
  const char *const *axes;
  int64_t group_size;
  uint64_t bytes;
  uint64_t wire_bytes;
  int64_t runs;
  double seconds; ///< Estimated.
  int32_t num_axes;
  int32_t rank; ///< Of the pipeline; negative: there is none.
} shardc_collective_info;

/// Reads and verifies a plan, from a file or from memory, of which it keeps no
/// reference. SHARDC_NOT_FOUND, SHARDC_DATA_LOSS, SHARDC_UNAVAILABLE: as Plan.h
/// says.
SHARDC_C_API SHARDC_C_CHECK shardc_error *shardc_plan_load(const char *path,
                                                           shardc_plan **plan);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_parse(const void *bytes, size_t size, shardc_plan **plan);
SHARDC_C_API void shardc_plan_free(shardc_plan *plan);

/// What a plan holds, by number from 0. SHARDC_NOT_FOUND: there is no such
/// number, or no tensor of this name.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_get_info(const shardc_plan *plan, shardc_plan_info *info);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_get_axis(const shardc_plan *plan, size_t axis,
                     shardc_axis_info *info);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_get_tensor(const shardc_plan *plan, size_t tensor,
                       shardc_tensor_info *info);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_find_tensor(const shardc_plan *plan, const char *name,
                        shardc_tensor_info *info);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_get_program(const shardc_plan *plan, size_t program,
                        shardc_program_info *info);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_plan_get_collective(const shardc_plan *plan, size_t program,
                           size_t collective, shardc_collective_info *info);

//===- Executors ----------------------------------------------------------===//

typedef struct shardc_context shardc_context;
typedef struct shardc_executor shardc_executor;
typedef struct shardc_result shardc_result;

/// `threads` worker threads, the calling one included; 0: as many as CPUs that
/// the process may use.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_context_create(int32_t threads, shardc_context **context);
SHARDC_C_API void shardc_context_free(shardc_context *context);

/// Zero stands for the default of each field.
typedef struct shardc_executor_options {
  size_t struct_size;
  uint64_t seed;          ///< Of initial values and dropout.
  const char *cpu_target; ///< The version of the kernels to run.
  int32_t poison_padding; ///< Fill padding with NaN.
  int32_t keep_replicas;  ///< Each device has memory of its own.
  int32_t ordered_sums;   ///< Add sums as several processes do.
  int32_t reserved;
} shardc_executor_options;

/// A dense, row-major array; its layout never changes. `name` is that of a
/// tensor or a result, and `bytes` the size of the memory at `data`.
typedef struct shardc_array {
  const char *name;
  const int64_t *shape;
  const void *data;
  size_t bytes;
  shardc_dtype dtype;
  int32_t num_dims;
} shardc_array;

typedef struct shardc_run_info {
  size_t struct_size;
  double loss; ///< NaN if the program has none.
  double seconds;
  double communication_seconds;
  uint64_t wire_bytes;
  size_t num_arrays;
} shardc_run_info;

/// Makes an executor; its parameters and states have no values yet. `options`
/// may be null.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_create(shardc_context *context, const shardc_plan *plan,
                       const shardc_executor_options *options,
                       shardc_executor **executor);
SHARDC_C_API void shardc_executor_free(shardc_executor *executor);

/// Gives parameters and states their initial values.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_initialize(shardc_executor *executor);

/// Sets a tensor, which `array` names, from a global array.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_set_tensor(shardc_executor *executor,
                           const shardc_array *array);

/// Writes the global array of a tensor to `data`, which has `bytes` bytes, as
/// many as `shardc_tensor_info` says.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_get_tensor(const shardc_executor *executor, const char *name,
                           void *data, size_t bytes);

/// All parameters, from and to FILE.npz or FILE.safetensors. A file that is
/// loaded may have states too.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_load_parameters(shardc_executor *executor, const char *path);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_save_parameters(const shardc_executor *executor,
                                const char *path);

/// Runs a program on `num_inputs` global arrays, all inputs and labels that it
/// has; they are borrowed for the call.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_run(shardc_executor *executor, const char *program,
                    const shardc_array *inputs, size_t num_inputs,
                    shardc_result **result);

/// Runs "train_step": updates parameters and states. `loss` is that of the
/// batch before the update; it may be null.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_step(shardc_executor *executor, const shardc_array *inputs,
                     size_t num_inputs, double *loss);

/// The outputs of the network, without labels and dropout, for the rows of
/// `inputs`, all inputs that "predict" takes. Their number is free: they run in
/// batches of the plan, the last of which is filled up. Values are converted to
/// the model's types, and labels are ignored. The result has one array,
/// "prediction", with a row for each one; bf16 as f32. It has no loss and no
/// times. SHARDC_NOT_FOUND: the plan makes no predictions, and why.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_executor_predict(shardc_executor *executor, const shardc_array *inputs,
                        size_t num_inputs, shardc_result **result);

/// The results of a run, by number from 0.
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_result_get_info(const shardc_result *result, shardc_run_info *info);
SHARDC_C_API SHARDC_C_CHECK shardc_error *
shardc_result_get_array(const shardc_result *result, size_t number,
                        shardc_array *array);
SHARDC_C_API void shardc_result_free(shardc_result *result);

#ifdef __cplusplus
}
#endif

#endif // SHARDC_RT_C_H
