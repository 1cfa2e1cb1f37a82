//===- CAbi.c - The layout of the C API -----------------------------------===//
//
// Prints size and fields of each structure of shardc-rt/c.h, and the values of
// its constants, for comparison with c-abi.txt. C99: the header is for C.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/c.h"

#include <stdio.h>

#define TYPE(type) printf(#type " %d\n", (int)sizeof(type))
#define FIELD(type, field)                                                     \
  printf("  " #field " %d %d\n", (int)offsetof(type, field),                   \
         (int)sizeof(((type *)0)->field))
#define VALUE(name) printf(#name " = %d\n", (int)(name))

int main(void) {
  TYPE(shardc_plan_info);
  FIELD(shardc_plan_info, struct_size);
  FIELD(shardc_plan_info, model);
  FIELD(shardc_plan_info, producer);
  FIELD(shardc_plan_info, target);
  FIELD(shardc_plan_info, mesh);
  FIELD(shardc_plan_info, fingerprint);
  FIELD(shardc_plan_info, num_devices);
  FIELD(shardc_plan_info, batch_size);
  FIELD(shardc_plan_info, arena_bytes);
  FIELD(shardc_plan_info, num_axes);
  FIELD(shardc_plan_info, num_tensors);
  FIELD(shardc_plan_info, num_programs);
  FIELD(shardc_plan_info, is_for_gpu);
  FIELD(shardc_plan_info, reserved);
  TYPE(shardc_axis_info);
  FIELD(shardc_axis_info, struct_size);
  FIELD(shardc_axis_info, name);
  FIELD(shardc_axis_info, size);
  TYPE(shardc_tensor_info);
  FIELD(shardc_tensor_info, struct_size);
  FIELD(shardc_tensor_info, name);
  FIELD(shardc_tensor_info, role);
  FIELD(shardc_tensor_info, dtype);
  FIELD(shardc_tensor_info, shape);
  FIELD(shardc_tensor_info, shard_shape);
  FIELD(shardc_tensor_info, num_axes);
  FIELD(shardc_tensor_info, axes);
  FIELD(shardc_tensor_info, label_classes);
  FIELD(shardc_tensor_info, bytes);
  FIELD(shardc_tensor_info, num_dims);
  FIELD(shardc_tensor_info, reserved);
  TYPE(shardc_program_info);
  FIELD(shardc_program_info, struct_size);
  FIELD(shardc_program_info, name);
  FIELD(shardc_program_info, wire_bytes);
  FIELD(shardc_program_info, matmul_flops);
  FIELD(shardc_program_info, num_results);
  FIELD(shardc_program_info, num_collectives);
  TYPE(shardc_collective_info);
  FIELD(shardc_collective_info, struct_size);
  FIELD(shardc_collective_info, kind);
  FIELD(shardc_collective_info, part);
  FIELD(shardc_collective_info, source);
  FIELD(shardc_collective_info, cause);
  FIELD(shardc_collective_info, axes);
  FIELD(shardc_collective_info, group_size);
  FIELD(shardc_collective_info, bytes);
  FIELD(shardc_collective_info, wire_bytes);
  FIELD(shardc_collective_info, runs);
  FIELD(shardc_collective_info, seconds);
  FIELD(shardc_collective_info, num_axes);
  FIELD(shardc_collective_info, rank);
  TYPE(shardc_executor_options);
  FIELD(shardc_executor_options, struct_size);
  FIELD(shardc_executor_options, seed);
  FIELD(shardc_executor_options, cpu_target);
  FIELD(shardc_executor_options, poison_padding);
  FIELD(shardc_executor_options, keep_replicas);
  FIELD(shardc_executor_options, ordered_sums);
  FIELD(shardc_executor_options, reserved);
  TYPE(shardc_array);
  FIELD(shardc_array, name);
  FIELD(shardc_array, shape);
  FIELD(shardc_array, data);
  FIELD(shardc_array, bytes);
  FIELD(shardc_array, dtype);
  FIELD(shardc_array, num_dims);
  TYPE(shardc_run_info);
  FIELD(shardc_run_info, struct_size);
  FIELD(shardc_run_info, loss);
  FIELD(shardc_run_info, seconds);
  FIELD(shardc_run_info, communication_seconds);
  FIELD(shardc_run_info, wire_bytes);
  FIELD(shardc_run_info, num_arrays);
  VALUE(SHARDC_OK);
  VALUE(SHARDC_CANCELLED);
  VALUE(SHARDC_UNKNOWN);
  VALUE(SHARDC_INVALID_ARGUMENT);
  VALUE(SHARDC_DEADLINE_EXCEEDED);
  VALUE(SHARDC_NOT_FOUND);
  VALUE(SHARDC_ALREADY_EXISTS);
  VALUE(SHARDC_PERMISSION_DENIED);
  VALUE(SHARDC_RESOURCE_EXHAUSTED);
  VALUE(SHARDC_FAILED_PRECONDITION);
  VALUE(SHARDC_ABORTED);
  VALUE(SHARDC_OUT_OF_RANGE);
  VALUE(SHARDC_UNIMPLEMENTED);
  VALUE(SHARDC_INTERNAL);
  VALUE(SHARDC_UNAVAILABLE);
  VALUE(SHARDC_DATA_LOSS);
  VALUE(SHARDC_UNAUTHENTICATED);
  VALUE(SHARDC_F32);
  VALUE(SHARDC_BF16);
  VALUE(SHARDC_F64);
  VALUE(SHARDC_I32);
  VALUE(SHARDC_I64);
  VALUE(SHARDC_BOOL);
  VALUE(SHARDC_PARAMETER);
  VALUE(SHARDC_STATE);
  VALUE(SHARDC_INPUT);
  VALUE(SHARDC_LABEL);
  return 0;
}
