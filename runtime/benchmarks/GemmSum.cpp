//===- GemmSum.cpp - The GEMMs of a step, by oneDNN -----------------------===//

#include "GemmSum.h"

#include "absl/strings/str_cat.h"

#include <chrono>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <thread>

using namespace shardc::rt::bench;

using Matrix = std::vector<float>;

static absl::Status check(dnnl_status_t status) {
  if (status == dnnl_success)
    return absl::OkStatus();
  return absl::InternalError(absl::StrCat("oneDNN: status ", int(status)));
}

/// c = op(a)·op(b), row-major. oneDNN has two ways to compute it; the faster
/// one here is taken.
struct GemmSum::Gemm {
  int64_t m, n, k;
  bool transposeA, transposeB;
  Matrix a, b, c;
  bool useSgemm = false;

  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_exec_arg_t arguments[3] = {};

  Gemm(int64_t m, int64_t n, int64_t k, bool transposeA, bool transposeB)
      : m(m), n(n), k(k), transposeA(transposeA), transposeB(transposeB),
        a(m * k, 0.5f), b(k * n, 0.25f), c(m * n) {}

  ~Gemm() {
    for (dnnl_exec_arg_t &argument : arguments)
      if (argument.memory)
        dnnl_memory_destroy(argument.memory);
    if (primitive)
      dnnl_primitive_destroy(primitive);
    if (stream)
      dnnl_stream_destroy(stream);
    if (engine)
      dnnl_engine_destroy(engine);
  }

  absl::Status describe(int argument, int64_t rows, int64_t columns,
                        bool transposed, Matrix &matrix,
                        dnnl_memory_desc_t &description, int index) {
    dnnl_dims_t dims = {rows, columns};
    dnnl_dims_t strides = {transposed ? 1 : columns, transposed ? rows : 1};
    absl::Status status = check(dnnl_memory_desc_init_by_strides(
        &description, 2, dims, dnnl_f32, strides));
    dnnl_memory_t memory = nullptr;
    status.Update(check(
        dnnl_memory_create(&memory, &description, engine, matrix.data())));
    arguments[index] = {argument, memory};
    return status;
  }

  absl::Status prepare() {
    absl::Status status = check(dnnl_engine_create(&engine, dnnl_cpu, 0));
    status.Update(
        check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags)));
    if (!status.ok())
      return status;
    dnnl_memory_desc_t aShape, bShape, cShape;
    status.Update(describe(DNNL_ARG_SRC, m, k, transposeA, a, aShape, 0));
    status.Update(describe(DNNL_ARG_WEIGHTS, k, n, transposeB, b, bShape, 1));
    status.Update(describe(DNNL_ARG_DST, m, n, false, c, cShape, 2));
    dnnl_matmul_desc_t matmul;
    status.Update(check(
        dnnl_matmul_desc_init(&matmul, &aShape, &bShape, nullptr, &cShape)));
    if (!status.ok())
      return status;
    dnnl_primitive_desc_t description = nullptr;
    status.Update(check(dnnl_primitive_desc_create(&description, &matmul,
                                                   nullptr, engine, nullptr)));
    if (!status.ok())
      return status;
    status.Update(check(dnnl_primitive_create(&primitive, description)));
    dnnl_primitive_desc_destroy(description);
    if (!status.ok())
      return status;
    // On a busy computer the choice takes several tries.
    double best[2] = {1e300, 1e300}, spent = 0;
    for (int round = 0; round < 3 || (round < 20 && spent < 0.5); ++round)
      for (bool sgemm : {false, true}) {
        useSgemm = sgemm;
        auto start = std::chrono::steady_clock::now();
        if (status = run(); !status.ok())
          return status;
        std::chrono::duration<double> time =
            std::chrono::steady_clock::now() - start;
        best[sgemm] = std::min(best[sgemm], time.count());
        spent += time.count();
      }
    useSgemm = best[1] < best[0];
    return status;
  }

  absl::Status run() {
    if (useSgemm)
      return check(dnnl_sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', m,
                              n, k, 1.0f, a.data(), transposeA ? m : k,
                              b.data(), transposeB ? k : n, 0.0f, c.data(), n));
    absl::Status status =
        check(dnnl_primitive_execute(primitive, stream, 3, arguments));
    status.Update(check(dnnl_stream_wait(stream)));
    return status;
  }
};

GemmSum::GemmSum() = default;
GemmSum::~GemmSum() = default;

absl::StatusOr<std::unique_ptr<GemmSum>>
GemmSum::create(int64_t batch, const std::vector<int64_t> &layers) {
  omp_set_num_threads(std::max(1u, std::thread::hardware_concurrency()));
  std::unique_ptr<GemmSum> sum(new GemmSum);
  auto add = [&](int64_t m, int64_t n, int64_t k, bool transposeA,
                 bool transposeB) {
    sum->gemms.push_back(
        std::make_unique<Gemm>(m, n, k, transposeA, transposeB));
    return sum->gemms.back()->prepare();
  };
  absl::Status status;
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    status.Update(add(batch, layers[i + 1], layers[i], false, false));
  for (size_t i = layers.size() - 1; i > 0; --i) {
    status.Update(add(layers[i - 1], layers[i], batch, true, false));
    if (i > 1)
      status.Update(add(batch, layers[i - 1], layers[i], false, true));
  }
  if (!status.ok())
    return status;
  return sum;
}

absl::Status GemmSum::run() {
  for (std::unique_ptr<Gemm> &gemm : gemms)
    if (absl::Status status = gemm->run(); !status.ok())
      return status;
  return absl::OkStatus();
}
