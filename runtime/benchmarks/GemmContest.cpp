//===- GemmContest.cpp - Our GEMMs beside those of libraries --------------===//
//
//   shardc-bench-gemms [--threads=N] [--cpu-target=NAME]
//                      [--peer=NAME=LIBRARY]... [--set=SET]
//
// Times GEMMs of f32 as the executor runs them, with packing and barriers, and
// those of oneDNN and of other libraries, each a shared object with `sgemm_` as
// in BLAS. All take turns, and the best of their runs count. A set is `model`,
// the GEMMs of 784-1024-1024-10 with batch 128 and of 1024-4096-1024 with batch
// 1024, `shapes`, some 240 others, `all`, or one shape, such as 128x1024x784. A
// library has its own number of threads and choice of vectors from its
// environment, such as OPENBLAS_NUM_THREADS.
//
//===----------------------------------------------------------------------===//

#include "MultiplyAdds.h"

#include "exec/RunGemm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <functional>
#include <memory>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <string>
#include <vector>

using namespace shardc::rt;

namespace {

using Clock = std::chrono::steady_clock;
using BlasSgemm = void (*)(const char *, const char *, const int *, const int *,
                           const int *, const float *, const float *,
                           const int *, const float *, const int *,
                           const float *, float *, const int *);

struct Shape {
  int64_t m, n, k;
  bool transposeA, transposeB;
};

struct Peer {
  std::string name;
  BlasSgemm sgemm; ///< Null: oneDNN.
};

/// Memory that starts at a page, as that of plans does.
struct Matrix {
  explicit Matrix(int64_t size)
      : data(static_cast<float *>(
            std::aligned_alloc(4096, (size * 4 + 8191) / 4096 * 4096))) {
    for (int64_t i = 0; i < size; ++i)
      data[i] = float(i * 7 % 11 - 5) / 8;
  }
  ~Matrix() { std::free(data); }
  Matrix(const Matrix &) = delete;
  float *data;
};

/// GFLOP/s of multiply-adds in registers on one core.
double measurePeak() {
  double best = 0;
  for (const bench::MultiplyAdds &adds : bench::multiplyAdds())
    for (int round = 0; round < 10; ++round) {
      auto start = Clock::now();
      volatile float result = adds.run();
      static_cast<void>(result);
      std::chrono::duration<double> time = Clock::now() - start;
      best = std::max(best, adds.flops / time.count() / 1e9);
    }
  return best;
}

/// A GEMM as the executor runs it.
class OwnGemm {
public:
  OwnGemm(const Shape &shape, const MicroKernels &kernels) {
    GemmCommand command{};
    command.bias = -1;
    command.batch = 1;
    command.m = shape.m, command.n = shape.n, command.k = shape.k;
    command.transposeA = shape.transposeA;
    command.transposeB = shape.transposeB;
    gemm = PreparedGemm::prepare(command, {DType::F32, DType::F32}, {}, {},
                                 kernels);
    packed = std::make_unique<Matrix>(gemm->packedBytes() / sizeof(float));
  }

  void run(WorkerPool &pool, const float *a, const float *b, float *c) {
    GemmOperands operands{a, b, nullptr, c, packed->data};
    pool.run([&](int worker) { runGemm(*gemm, operands, pool, worker); });
  }

private:
  std::unique_ptr<PreparedGemm> gemm;
  std::unique_ptr<Matrix> packed;
};

void runPeer(const Peer &peer, const Shape &shape, const float *a,
             const float *b, float *c) {
  int m = shape.m, n = shape.n, k = shape.k;
  int aRow = shape.transposeA ? m : k, bRow = shape.transposeB ? k : n;
  const float one = 1, zero = 0;
  char transposeA = shape.transposeA ? 'T' : 'N';
  char transposeB = shape.transposeB ? 'T' : 'N';
  if (peer.sgemm) // By columns: the transposes in the other order.
    peer.sgemm(&transposeB, &transposeA, &n, &m, &k, &one, b, &bRow, a, &aRow,
               &zero, c, &n);
  else if (dnnl_sgemm(transposeA, transposeB, m, n, k, 1, a, aRow, b, bRow, 0,
                      c, n) != dnnl_success)
    std::abort();
}

/// Seconds of this thread's own time, or of the clock.
double now(bool ofThread) {
  timespec time;
  clock_gettime(ofThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/// Seconds of the best run of each side, which take turns.
std::vector<double> contest(const std::vector<std::function<void()>> &sides,
                            bool ofThread) {
  std::vector<double> best(sides.size(), 1e300);
  std::vector<int> repeats;
  for (const std::function<void()> &side : sides) {
    side();
    double start = now(ofThread);
    side();
    repeats.push_back(std::clamp(2e-4 / (now(ofThread) - start), 1.0, 1000.0));
  }
  double spent = 0;
  for (int round = 0; round < 8 || (round < 400 && spent < 0.08); ++round)
    for (size_t i = 0; i < sides.size(); ++i) {
      double start = now(ofThread);
      for (int repeat = 0; repeat < repeats[i]; ++repeat)
        sides[i]();
      double time = now(ofThread) - start;
      spent += time;
      best[i] = std::min(best[i], time / repeats[i]);
    }
  return best;
}

void addStep(std::vector<Shape> &shapes, int64_t batch,
             const std::vector<int64_t> &layers) {
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    shapes.push_back({batch, layers[i + 1], layers[i], false, false});
  for (size_t i = layers.size() - 1; i > 0; --i) {
    shapes.push_back({layers[i - 1], layers[i], batch, true, false});
    if (i > 1)
      shapes.push_back({batch, layers[i - 1], layers[i], false, true});
  }
}

void addTranspositions(std::vector<Shape> &shapes, int64_t m, int64_t n,
                       int64_t k) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true})
      shapes.push_back({m, n, k, transposeA, transposeB});
}

std::vector<Shape> shapesOf(const std::string &set) {
  std::vector<Shape> shapes;
  if (set == "model" || set == "all") {
    addStep(shapes, 128, {784, 1024, 1024, 10});
    addStep(shapes, 1024, {1024, 4096, 1024});
  }
  if (set == "shapes" || set == "all") {
    const int64_t sizes[][3] = {
        {128, 128, 128},    {256, 256, 256},    {512, 512, 512},
        {1024, 1024, 1024}, {1536, 1536, 1536}, {97, 101, 103},
        {251, 127, 61},     {127, 1021, 787},   {127, 1031, 1021},
        {509, 521, 523},    {1021, 1031, 1033}, {777, 333, 555},
        {64, 64, 1024},     {64, 64, 4096},     {256, 64, 128},
        {64, 256, 512},     {128, 2048, 512},   {2048, 128, 512},
        {2048, 512, 128},   {512, 2048, 128},   {1024, 32, 1024},
        {32, 1024, 1024},   {1024, 1024, 32},   {1024, 24, 512},
        {24, 1024, 512},    {1000, 20, 1000},   {20, 1000, 1000},
        {1000, 17, 700},    {17, 1000, 700},    {1000, 1000, 17},
        {1000, 1000, 20},   {8, 1024, 1024},    {5, 2000, 900},
        {1024, 8, 1024},    {2000, 5, 900},     {10, 1024, 1024},
        {1024, 10, 1024},   {1024, 1024, 10},   {1000, 1000, 5},
        {128, 10, 1024},    {1024, 10, 128},    {128, 1024, 10},
        {16, 4096, 256},    {4096, 16, 256},    {4096, 48, 64},
        {48, 4096, 64},     {40, 40, 5000},     {33, 65, 3001},
        {200, 3000, 150},   {3000, 200, 150},   {150, 200, 3000},
        {7, 7, 40000},      {128, 784, 128},    {1024, 784, 64},
        {384, 384, 1537},   {1025, 129, 257},   {129, 1025, 257},
        {63, 511, 2047},    {2047, 511, 63},    {320, 960, 640},
    };
    for (const auto &[m, n, k] : sizes)
      addTranspositions(shapes, m, n, k);
  }
  long m, n, k;
  if (std::sscanf(set.c_str(), "%ldx%ldx%ld", &m, &n, &k) == 3 &&
      std::min({m, n, k}) > 0)
    addTranspositions(shapes, m, n, k);
  return shapes;
}

} // namespace

int main(int argc, char **argv) {
  int threads = 1;
  std::string set = "all", cpuTarget;
  std::vector<Peer> peers = {{"oneDNN", nullptr}};
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.rfind("--threads=", 0) == 0) {
      threads = std::atoi(argv[i] + 10);
    } else if (argument.rfind("--set=", 0) == 0) {
      set = argument.substr(6);
    } else if (argument.rfind("--cpu-target=", 0) == 0) {
      cpuTarget = argument.substr(13);
    } else if (size_t name = argument.find('=', 7);
               argument.rfind("--peer=", 0) == 0 && name != std::string::npos) {
      void *library = dlopen(argv[i] + name + 1, RTLD_NOW | RTLD_LOCAL);
      void *sgemm = library ? dlsym(library, "sgemm_") : nullptr;
      if (!sgemm) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
      }
      peers.push_back(
          {argument.substr(7, name - 7), reinterpret_cast<BlasSgemm>(sgemm)});
    } else {
      std::fprintf(stderr, "usage: shardc-bench-gemms [--threads=N] "
                           "[--cpu-target=NAME] [--peer=NAME=LIBRARY]... "
                           "[--set=model|shapes|all|MxNxK]\n");
      return 2;
    }
  }
  std::vector<Shape> shapes = shapesOf(set);
  if (threads < 1 || shapes.empty()) {
    std::fprintf(stderr, "--threads must be positive, and --set one of model, "
                         "shapes, all, and M, N, K as in 128x1024x784\n");
    return 2;
  }
  if (cpuTarget != "" && cpuTarget != "x86-64-v3" && cpuTarget != "x86-64-v4") {
    std::fprintf(stderr, "--cpu-target must be x86-64-v3 or x86-64-v4\n");
    return 2;
  }

  double peak = measurePeak() * threads;
  std::printf("multiply-adds in registers, %d cores: %.1f GFLOP/s\n", threads,
              peak);
  std::printf("%6s %6s %6s     %8s %6s", "m", "n", "k", "shardc", "peak");
  for (const Peer &peer : peers)
    std::printf(" %9s", peer.name.c_str());
  std::printf("  ratio to the best\n");
  WorkerPool pool(threads);
  std::vector<double> ratios, totals(1 + peers.size());
  for (const Shape &shape : shapes) {
    Matrix a(shape.m * shape.k), b(shape.k * shape.n), c(shape.m * shape.n);
    OwnGemm own(shape, MicroKernels::upTo(cpuTarget));
    std::vector<std::function<void()>> sides = {
        [&] { own.run(pool, a.data, b.data, c.data); }};
    for (const Peer &peer : peers)
      sides.push_back([&] {
        omp_set_num_threads(threads);
        runPeer(peer, shape, a.data, b.data, c.data);
      });
    std::vector<double> seconds = contest(sides, threads == 1);
    double gigaflop = 2e-9 * shape.m * shape.n * shape.k;
    double best = *std::min_element(seconds.begin() + 1, seconds.end());
    ratios.push_back(best / seconds[0]);
    std::printf("%6ld %6ld %6ld %c%c  %8.1f %5.0f%%", long(shape.m),
                long(shape.n), long(shape.k), shape.transposeA ? 'T' : 'N',
                shape.transposeB ? 'T' : 'N', gigaflop / seconds[0],
                100 * gigaflop / seconds[0] / peak);
    for (size_t i = 0; i < seconds.size(); ++i) {
      totals[i] += seconds[i];
      if (i > 0)
        std::printf(" %9.1f", gigaflop / seconds[i]);
    }
    std::printf("  %.2f\n", ratios.back());
    std::fflush(stdout);
  }
  std::sort(ratios.begin(), ratios.end());
  double product = 0;
  for (double ratio : ratios)
    product += std::log(ratio);
  std::printf("%zu shapes: ratio to the best least %.2f, median %.2f, mean "
              "%.2f; %ld below 0.9\n",
              ratios.size(), ratios[0], ratios[ratios.size() / 2],
              std::exp(product / ratios.size()),
              long(std::lower_bound(ratios.begin(), ratios.end(), 0.9) -
                   ratios.begin()));
  std::printf("all of them: shardc %.2f ms", totals[0] * 1e3);
  for (size_t i = 0; i < peers.size(); ++i)
    std::printf(", %s %.2f ms", peers[i].name.c_str(), totals[i + 1] * 1e3);
  std::printf("\n");
}
