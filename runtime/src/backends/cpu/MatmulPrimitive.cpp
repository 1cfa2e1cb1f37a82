//===- MatmulPrimitive.cpp - oneDNN's matmul with an epilogue -------------===//

#include "backends/cpu/MatmulPrimitive.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>

using namespace shardc::rt;

namespace {

/// Frees what oneDNN made when a function returns early.
struct Attributes {
  dnnl_primitive_attr_t attributes = nullptr;
  dnnl_post_ops_t postOps = nullptr;
  dnnl_primitive_desc_t description = nullptr;

  ~Attributes() {
    if (description)
      dnnl_primitive_desc_destroy(description);
    if (postOps)
      dnnl_post_ops_destroy(postOps);
    if (attributes)
      dnnl_primitive_attr_destroy(attributes);
  }
};

} // namespace

static absl::Status check(dnnl_status_t status, const char *what) {
  if (status == dnnl_success)
    return absl::OkStatus();
  if (status == dnnl_unimplemented)
    return absl::UnimplementedError(
        absl::StrCat("oneDNN: ", what, " is not available on this CPU"));
  if (status == dnnl_out_of_memory)
    return absl::ResourceExhaustedError(
        absl::StrCat("oneDNN: out of memory in ", what));
  return absl::InternalError(
      absl::StrCat("oneDNN: ", what, " failed with status ", int(status)));
}

static absl::Status describeMatrix(dnnl_memory_desc_t &matrix, int64_t rows,
                                   int64_t columns, int64_t rowStride,
                                   int64_t columnStride, DType dtype) {
  dnnl_dims_t dims = {rows, columns}, strides = {rowStride, columnStride};
  return check(dnnl_memory_desc_init_by_strides(
                   &matrix, 2, dims,
                   dtype == DType::BF16 ? dnnl_bf16 : dnnl_f32, strides),
               "a matrix description");
}

absl::StatusOr<std::unique_ptr<MatmulPrimitive>>
MatmulPrimitive::create(const MatmulShape &shape) {
  std::unique_ptr<MatmulPrimitive> result(new MatmulPrimitive);
  result->hasBias = shape.hasBias;
  absl::Status status =
      check(dnnl_engine_create(&result->engine, dnnl_cpu, 0), "the CPU engine");
  status.Update(describeMatrix(result->a, shape.m, shape.k, shape.aStrides[0],
                               shape.aStrides[1], shape.dtype));
  status.Update(describeMatrix(result->b, shape.k, shape.n, shape.bStrides[0],
                               shape.bStrides[1], shape.dtype));
  status.Update(
      describeMatrix(result->bias, 1, shape.n, shape.n, 1, shape.dtype));
  status.Update(describeMatrix(result->c, shape.m, shape.n, shape.cStride, 1,
                               shape.dtype));
  if (!status.ok())
    return status;

  Attributes made;
  status.Update(check(dnnl_primitive_attr_create(&made.attributes),
                      "primitive attributes"));
  status.Update(check(dnnl_primitive_attr_set_scratchpad_mode(
                          made.attributes, dnnl_scratchpad_mode_user),
                      "the scratchpad mode"));
  status.Update(check(dnnl_post_ops_create(&made.postOps), "post-ops"));
  if (!status.ok())
    return status;
  if (shape.accumulate)
    status.Update(
        check(dnnl_post_ops_append_sum(made.postOps, 1.0f), "accumulation"));
  if (shape.relu)
    status.Update(check(dnnl_post_ops_append_eltwise(
                            made.postOps, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f),
                        "relu"));
  status.Update(
      check(dnnl_primitive_attr_set_post_ops(made.attributes, made.postOps),
            "post-ops"));
  dnnl_matmul_desc_t matmul;
  status.Update(check(dnnl_matmul_desc_init(
                          &matmul, &result->a, &result->b,
                          shape.hasBias ? &result->bias : nullptr, &result->c),
                      "a matrix product"));
  if (!status.ok())
    return status;
  status.Update(check(dnnl_primitive_desc_create(&made.description, &matmul,
                                                 made.attributes,
                                                 result->engine, nullptr),
                      "this matrix product"));
  if (!status.ok())
    return status;
  if (const dnnl_memory_desc_t *scratchpad = dnnl_primitive_desc_query_md(
          made.description, dnnl_query_scratchpad_md, 0)) {
    result->scratchpad = *scratchpad;
    result->scratchpadBytes = dnnl_memory_desc_get_size(scratchpad);
  }
  status.Update(
      check(dnnl_primitive_create(&result->primitive, made.description),
            "this matrix product"));
  if (!status.ok())
    return status;
  return result;
}

MatmulPrimitive::~MatmulPrimitive() {
  if (primitive)
    dnnl_primitive_destroy(primitive);
  if (engine)
    dnnl_engine_destroy(engine);
}

absl::Status MatmulPrimitive::run(const void *aData, const void *bData,
                                  const void *biasData, void *cData) const {
  struct Execution {
    void *scratch = nullptr;
    dnnl_stream_t stream = nullptr;
    dnnl_exec_arg_t arguments[5];
    int count = 0;

    ~Execution() {
      for (int i = 0; i < count; ++i)
        dnnl_memory_destroy(arguments[i].memory);
      if (stream)
        dnnl_stream_destroy(stream);
      std::free(scratch);
    }
  } execution;
  if (scratchpadBytes > 0) {
    execution.scratch =
        std::aligned_alloc(64, (scratchpadBytes + 63) / 64 * 64);
    if (!execution.scratch)
      return absl::ResourceExhaustedError(
          absl::StrCat("out of memory: cannot allocate ", scratchpadBytes,
                       " bytes for a matrix product"));
  }
  absl::Status status = check(
      dnnl_stream_create(&execution.stream, engine, dnnl_stream_default_flags),
      "a stream");
  auto add = [&](int argument, const dnnl_memory_desc_t &description,
                 const void *data) {
    dnnl_memory_t memory = nullptr;
    status.Update(check(dnnl_memory_create(&memory, &description, engine,
                                           const_cast<void *>(data)),
                        "an operand"));
    if (memory)
      execution.arguments[execution.count++] = {argument, memory};
  };
  add(DNNL_ARG_SRC, a, aData);
  add(DNNL_ARG_WEIGHTS, b, bData);
  if (hasBias)
    add(DNNL_ARG_BIAS, bias, biasData);
  add(DNNL_ARG_DST, c, cData);
  if (scratchpadBytes > 0)
    add(DNNL_ARG_SCRATCHPAD, scratchpad, execution.scratch);
  if (!status.ok())
    return status;
  status.Update(
      check(dnnl_primitive_execute(primitive, execution.stream, execution.count,
                                   execution.arguments),
            "a matrix product"));
  status.Update(check(dnnl_stream_wait(execution.stream), "a matrix product"));
  return status;
}
