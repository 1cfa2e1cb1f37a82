//===- MeasureGpu.cpp - What a GPU attains --------------------------------===//

#include "backends/cuda/MeasureGpu.h"

#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Event.h"
#include "backends/cuda/Gemm.h"
#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/TimeIssued.h"

#include <algorithm>
#include <random>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

static constexpr int repeats = 5;
/// More than any cache holds.
static constexpr uint64_t copiedBytes = uint64_t(256) << 20;

/// Mean seconds of what `issue` puts on `stream`.
static absl::StatusOr<double> timeOn(const cuda::Stream &stream, int repeats,
                                     absl::Duration deadline,
                                     absl::FunctionRef<absl::Status()> issue) {
  absl::StatusOr<Event> done = Event::create(stream.context());
  if (!done.ok())
    return done.status();
  return timeIssued(repeats, issue, [&] {
    absl::Status recorded = done->record(stream);
    return recorded.ok() ? done->wait(deadline, "measuring") : recorded;
  });
}

absl::StatusOr<double>
shardc::rt::cuda::measureCopies(const cuda::Stream &stream, uint64_t bytes,
                                int repeats, absl::Duration deadline) {
  const cuda::Context &context = stream.context();
  absl::StatusOr<DeviceMemory> from =
      DeviceMemory::allocate(context, bytes, "a copy");
  if (!from.ok())
    return from.status();
  absl::StatusOr<DeviceMemory> to =
      DeviceMemory::allocate(context, bytes, "a copy");
  if (!to.ok())
    return to.status();
  absl::StatusOr<double> seconds = timeOn(stream, repeats, deadline, [&] {
    return context.check(context.driver().memcpyDtoDAsync(to->address(),
                                                          from->address(),
                                                          bytes, stream.get()),
                         "cuMemcpyDtoDAsync");
  });
  if (!seconds.ok())
    return seconds.status();
  return 2 * static_cast<double>(bytes) / *seconds;
}

namespace {

/// Two factors of f32 or bf16, a result and scratch memory.
class Matrices {
public:
  static absl::StatusOr<Matrices> allocate(const cuda::Context &context,
                                           int64_t size,
                                           uint64_t workspaceBytes) {
    Matrices matrices;
    matrices.size = size;
    for (DeviceMemory *memory :
         {&matrices.a, &matrices.b, &matrices.c, &matrices.workspace}) {
      absl::StatusOr<DeviceMemory> made = DeviceMemory::allocate(
          context,
          memory == &matrices.workspace ? workspaceBytes : 4 * size * size,
          "the matrices of a GEMM");
      if (!made.ok())
        return made.status();
      *memory = *std::move(made);
    }
    return matrices;
  }

  /// GPUs multiply zeros faster: fills the factors with random numbers.
  absl::Status fill(const cuda::Stream &stream, DType dtype) const {
    const cuda::Context &context = stream.context();
    const uint64_t bytes = size * size * byteSize(dtype);
    absl::StatusOr<PinnedMemory> host =
        PinnedMemory::allocate(context, bytes, "the matrices of a GEMM");
    if (!host.ok())
      return host.status();
    std::minstd_rand generator;
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < size * size; ++i) {
      const float value = uniform(generator);
      const char *from = reinterpret_cast<const char *>(&value);
      // bf16 is the upper half of an f32.
      std::copy(from + 4 - byteSize(dtype), from + 4,
                host->data() + i * byteSize(dtype));
    }
    for (const DeviceMemory *memory : {&a, &b})
      if (absl::Status s = context.check(
              context.driver().memcpyHtoDAsync(memory->address(), host->data(),
                                               bytes, stream.get()),
              "cuMemcpyHtoDAsync");
          !s.ok())
        return s;
    // The host's memory goes away.
    absl::StatusOr<Event> done = Event::create(context);
    if (!done.ok())
      return done.status();
    if (absl::Status s = done->record(stream); !s.ok())
      return s;
    return done->wait(absl::Minutes(1), "copying matrices");
  }

  GemmOperands places() const {
    return {a.address(), b.address(), c.address()};
  }

  int64_t size; ///< Rows and columns.
  DeviceMemory a, b, c, workspace;
};

} // namespace

/// FLOP/s of a GEMM.
static absl::StatusOr<double> measureGemm(const GemmLibrary &library,
                                          const cuda::Stream &stream,
                                          const Matrices &matrices, DType dtype,
                                          Precision precision,
                                          const CudaOptions &options) {
  const int64_t size = matrices.size;
  GemmCommand command{};
  command.bias = -1;
  command.batch = 1;
  command.m = command.n = command.k = size;
  command.precision = precision;
  const GemmRequest request{0, &command, {dtype, dtype}, 256};
  absl::StatusOr<std::unique_ptr<Gemm>> gemm = Gemm::prepare(
      library, request, matrices.places(), options.gemmWorkspaceBytes, nullptr);
  if (!gemm.ok())
    return gemm.status();
  absl::StatusOr<double> seconds =
      timeOn(stream, repeats, options.deadline, [&] {
        return (*gemm)->issue(matrices.places(), matrices.workspace.address(),
                              stream);
      });
  if (!seconds.ok())
    return seconds.status();
  return 2.0 * size * size * size / *seconds;
}

absl::StatusOr<GpuRates>
shardc::rt::cuda::measureGpu(const CudaOptions &options, int64_t size) {
  absl::StatusOr<std::unique_ptr<Driver>> driver =
      Driver::open(options.driverPath);
  if (!driver.ok())
    return driver.status();
  absl::StatusOr<std::unique_ptr<CublasLt>> cublasLt =
      CublasLt::open(options.cublasLtPath);
  if (!cublasLt.ok())
    return cublasLt.status();
  absl::StatusOr<std::unique_ptr<cuda::Context>> context =
      cuda::Context::create(**driver, options.gpu);
  if (!context.ok())
    return context.status();
  absl::StatusOr<std::unique_ptr<GemmLibrary>> library =
      GemmLibrary::create(**cublasLt, **context);
  if (!library.ok())
    return library.status();
  absl::StatusOr<cuda::Stream> stream = cuda::Stream::create(**context);
  if (!stream.ok())
    return stream.status();
  GpuRates rates{};
  rates.name = (*context)->name();
  size_t available = 0, total = 0;
  if (absl::Status s = (*context)->check(
          (*driver)->memGetInfo(&available, &total), "cuMemGetInfo");
      !s.ok())
    return s;
  rates.memoryBytes = total;
  absl::StatusOr<double> copies =
      measureCopies(*stream, copiedBytes, repeats, options.deadline);
  if (!copies.ok())
    return copies.status();
  rates.memory = *copies;
  absl::StatusOr<Matrices> matrices =
      Matrices::allocate(**context, size, options.gemmWorkspaceBytes);
  if (!matrices.ok())
    return matrices.status();
  struct {
    DType dtype;
    Precision precision;
    double &rate;
  } kinds[] = {{DType::F32, Precision::Highest, rates.f32},
               {DType::F32, Precision::TF32, rates.tf32},
               {DType::BF16, Precision::Highest, rates.bf16}};
  for (auto &[dtype, precision, rate] : kinds) {
    if (absl::Status s = matrices->fill(*stream, dtype); !s.ok())
      return s;
    absl::StatusOr<double> measured =
        measureGemm(**library, *stream, *matrices, dtype, precision, options);
    if (!measured.ok())
      return measured.status();
    rate = *measured;
  }
  return rates;
}
