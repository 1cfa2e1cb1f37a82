//===- embed.c - Training inside of a host application in C ---------------===//
//
//   embed-c PLAN.shardc [STEPS]
//
// Loads a plan, feeds batches of random numbers, and prints losses. Every input
// and label of the plan has to be of f32.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/c.h"

#include <stdio.h>
#include <stdlib.h>

static void check(shardc_error *error) {
  if (!error)
    return;
  fprintf(stderr, "embed-c: %s\n", shardc_error_message(error));
  shardc_error_free(error);
  exit(2);
}

int main(int argc, char **argv) {
  shardc_plan *plan;
  shardc_context *context;
  shardc_executor *executor;
  shardc_plan_info info = {.struct_size = sizeof info};
  shardc_array batch[8];
  size_t inputs = 0, i, element;
  int step, steps = argc > 2 ? atoi(argv[2]) : 50;
  double loss;
  if (argc < 2)
    return fprintf(stderr, "usage: embed-c PLAN.shardc [STEPS]\n"), 1;

  check(shardc_plan_load(argv[1], &plan));
  check(shardc_context_create(/*threads=*/0, &context));
  check(shardc_executor_create(context, plan, /*options=*/NULL, &executor));
  check(shardc_executor_initialize(executor));
  check(shardc_plan_get_info(plan, &info));
  printf("%s on %s\n", info.model, info.mesh);

  /* Global arrays: the runtime gives every device its shard. */
  for (i = 0; i < info.num_tensors && inputs < 8; ++i) {
    shardc_tensor_info tensor = {.struct_size = sizeof tensor};
    check(shardc_plan_get_tensor(plan, i, &tensor));
    if (tensor.role == SHARDC_INPUT || tensor.role == SHARDC_LABEL) {
      shardc_array array = {tensor.name,  tensor.shape, malloc(tensor.bytes),
                            tensor.bytes, tensor.dtype, tensor.num_dims};
      batch[inputs++] = array;
    }
  }
  for (step = 0; step < steps; ++step) {
    for (i = 0; i < inputs; ++i)
      for (element = 0; element < batch[i].bytes / sizeof(float); ++element)
        ((float *)batch[i].data)[element] = (float)rand() / (float)RAND_MAX;
    check(shardc_executor_step(executor, batch, inputs, &loss));
    if (step % 10 == 0 || step + 1 == steps)
      printf("step %d loss %g\n", step, loss);
  }
  for (i = 0; i < inputs; ++i)
    free((void *)batch[i].data);
  shardc_executor_free(executor);
  shardc_context_free(context);
  shardc_plan_free(plan);
  return 0;
}
