//===- MeasureGpu.cpp - What a GPU attains --------------------------------===//

#include "backends/cuda/MeasureGpu.h"

#include "backends/cuda/CollectiveKernels.h"
#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Event.h"
#include "backends/cuda/Gemm.h"
#include "backends/cuda/Graph.h"
#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/TimeIssued.h"

#include <algorithm>
#include <limits>
#include <random>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

static constexpr int repeats = 5, passes = 2;
/// More than any cache holds, and so little that a copy takes as long as its
/// start.
static constexpr uint64_t copiedBytes = uint64_t(256) << 20,
                          leastCopied = uint64_t(4) << 20;

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

/// The least mean seconds of one of `times` times what `issue` puts on
/// `stream`, one behind the other in a graph.
static absl::StatusOr<double>
timeInGraph(const cuda::Stream &stream, int times, absl::Duration deadline,
            absl::FunctionRef<absl::Status()> issue) {
  // Drivers and libraries load code on first use, which no capture may do.
  if (absl::Status s = issue(); !s.ok())
    return s;
  const cuda::Stream *captured = &stream;
  absl::StatusOr<std::vector<Graph>> graphs =
      Graph::capture({&captured, 1}, [&]() -> absl::Status {
        for (int i = 0; i < times; ++i)
          if (absl::Status s = issue(); !s.ok())
            return s;
        return absl::OkStatus();
      });
  if (!graphs.ok())
    return graphs.status();
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < passes; ++pass) {
    absl::StatusOr<double> seconds = timeOn(stream, repeats, deadline, [&] {
      return graphs->front().launch(stream);
    });
    if (!seconds.ok())
      return seconds.status();
    least = std::min(least, *seconds / times);
  }
  return least;
}

namespace {

/// Two places in memory, and copies from the one to the other.
class Copies {
public:
  static absl::StatusOr<Copies> allocate(const cuda::Stream &stream,
                                         uint64_t bytes) {
    Copies copies;
    for (DeviceMemory *memory : {&copies.from, &copies.to}) {
      absl::StatusOr<DeviceMemory> made =
          DeviceMemory::allocate(stream.context(), bytes, "a copy");
      if (!made.ok())
        return made.status();
      *memory = *std::move(made);
    }
    return copies;
  }

  absl::Status issue(const cuda::Stream &stream, uint64_t bytes) const {
    const cuda::Context &context = stream.context();
    return context.check(context.driver().memcpyDtoDAsync(
                             to.address(), from.address(), bytes, stream.get()),
                         "cuMemcpyDtoDAsync");
  }

private:
  DeviceMemory from, to;
};

} // namespace

absl::StatusOr<double>
shardc::rt::cuda::measureCopies(const cuda::Stream &stream, uint64_t bytes,
                                int repeats, absl::Duration deadline) {
  absl::StatusOr<Copies> copies = Copies::allocate(stream, bytes);
  if (!copies.ok())
    return copies.status();
  absl::StatusOr<double> seconds = timeOn(
      stream, repeats, deadline, [&] { return copies->issue(stream, bytes); });
  if (!seconds.ok())
    return seconds.status();
  return 2 * static_cast<double>(bytes) / *seconds;
}

namespace {

/// Two factors of f32 or bf16, a result, a vector and scratch memory.
class Matrices {
public:
  static absl::StatusOr<Matrices> allocate(const cuda::Context &context,
                                           int64_t size,
                                           uint64_t workspaceBytes) {
    Matrices matrices;
    matrices.size = size;
    for (DeviceMemory *memory : {&matrices.a, &matrices.b, &matrices.c,
                                 &matrices.vector, &matrices.workspace}) {
      absl::StatusOr<DeviceMemory> made =
          DeviceMemory::allocate(context,
                                 memory == &matrices.workspace ? workspaceBytes
                                 : memory == &matrices.vector  ? 4 * size
                                                              : 4 * size * size,
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

  cuda::GemmOperands places() const {
    return {a.address(), b.address(), c.address(), vector.address()};
  }

  int64_t size; ///< Rows and columns.
  DeviceMemory a, b, c, vector, workspace;
};

} // namespace

namespace {

/// A type in which the library multiplies.
struct GemmType {
  const char *name;
  DType dtype;
  Precision precision;
};
constexpr GemmType gemmTypes[] = {{"f32", DType::F32, Precision::Highest},
                                  {"tf32", DType::F32, Precision::TF32},
                                  {"bf16", DType::BF16, Precision::Highest}};

/// What a GEMM does besides multiplying factors as they lie.
struct GemmForm {
  const char *name;
  bool transposeA, transposeB, sumsColumns;
};
constexpr GemmForm plainForm = {"", false, false, false};
constexpr GemmForm otherForms[] = {{"transpose_lhs", true, false, false},
                                   {"transpose_rhs", false, true, false},
                                   {"sums_rhs", true, false, true}};

/// A GPU that is measured.
class MeasuredGpu {
public:
  static absl::StatusOr<std::unique_ptr<MeasuredGpu>>
  open(const CudaOptions &options);

  /// Allocates matrices of `size` rows and columns.
  absl::Status allocateMatrices(int64_t size);
  absl::Status fillMatrices(DType dtype) {
    return matrices->fill(*stream, dtype);
  }
  /// A GEMM of the allocated matrices, or of a part of them.
  absl::StatusOr<std::unique_ptr<Gemm>>
  prepare(const GemmType &type, int64_t rows, int64_t columns, int64_t terms,
          const GemmForm &form = plainForm) const;
  absl::Status issue(const Gemm &gemm) const {
    return gemm.issue(matrices->places(), matrices->workspace.address(),
                      *stream);
  }

  const CudaOptions &options;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<CublasLt> cublasLt;
  std::unique_ptr<cuda::Context> context;
  std::unique_ptr<GemmLibrary> library;
  std::optional<cuda::Stream> stream;

private:
  explicit MeasuredGpu(const CudaOptions &options) : options(options) {}

  std::optional<Matrices> matrices;
};

} // namespace

/// Moves a value into `place`, or returns the error.
template <typename Value, typename Place>
static absl::Status keep(absl::StatusOr<Value> value, Place &place) {
  if (value.ok())
    place = *std::move(value);
  return value.status();
}

absl::StatusOr<std::unique_ptr<MeasuredGpu>>
MeasuredGpu::open(const CudaOptions &options) {
  std::unique_ptr<MeasuredGpu> gpu(new MeasuredGpu(options));
  if (absl::Status s = keep(Driver::open(options.driverPath), gpu->driver);
      !s.ok())
    return s;
  if (absl::Status s =
          keep(CublasLt::open(options.cublasLtPath), gpu->cublasLt);
      !s.ok())
    return s;
  if (absl::Status s =
          keep(cuda::Context::create(*gpu->driver, options.gpu), gpu->context);
      !s.ok())
    return s;
  if (absl::Status s = keep(GemmLibrary::create(*gpu->cublasLt, *gpu->context),
                            gpu->library);
      !s.ok())
    return s;
  if (absl::Status s = keep(cuda::Stream::create(*gpu->context), gpu->stream);
      !s.ok())
    return s;
  return gpu;
}

absl::Status MeasuredGpu::allocateMatrices(int64_t size) {
  return keep(Matrices::allocate(*context, size, options.gemmWorkspaceBytes),
              matrices);
}

absl::StatusOr<std::unique_ptr<Gemm>>
MeasuredGpu::prepare(const GemmType &type, int64_t rows, int64_t columns,
                     int64_t terms, const GemmForm &form) const {
  GemmCommand command{};
  command.bias = -1;
  command.columnSums = form.sumsColumns ? 0 : -1;
  command.transposeA = form.transposeA;
  command.transposeB = form.transposeB;
  command.batch = 1;
  command.m = rows;
  command.n = columns;
  command.k = terms;
  command.precision = type.precision;
  const DType result = form.transposeA ? DType::F32 : type.dtype;
  const GemmRequest request{0, &command, {type.dtype, result}, 256};
  return Gemm::prepare(*library, request, matrices->places(),
                       options.gemmWorkspaceBytes, nullptr);
}

absl::StatusOr<GpuRates>
shardc::rt::cuda::measureGpu(const CudaOptions &options, int64_t size) {
  absl::StatusOr<std::unique_ptr<MeasuredGpu>> gpu = MeasuredGpu::open(options);
  if (!gpu.ok())
    return gpu.status();
  const cuda::Stream &stream = *(*gpu)->stream;
  GpuRates rates{};
  rates.name = (*gpu)->context->name();
  size_t available = 0, total = 0;
  if (absl::Status s = (*gpu)->context->check(
          (*gpu)->driver->memGetInfo(&available, &total), "cuMemGetInfo");
      !s.ok())
    return s;
  rates.memoryBytes = total;
  if (absl::Status s =
          keep(measureCopies(stream, copiedBytes, repeats, options.deadline),
               rates.memory);
      !s.ok())
    return s;
  if (absl::Status s = (*gpu)->allocateMatrices(size); !s.ok())
    return s;
  for (const GemmType &type : gemmTypes) {
    if (absl::Status s = (*gpu)->fillMatrices(type.dtype); !s.ok())
      return s;
    absl::StatusOr<std::unique_ptr<Gemm>> gemm =
        (*gpu)->prepare(type, size, size, size);
    if (!gemm.ok())
      return gemm.status();
    absl::StatusOr<double> seconds =
        timeOn(stream, repeats, options.deadline,
               [&] { return (*gpu)->issue(**gemm); });
    if (!seconds.ok())
      return seconds.status();
    const double rate = 2.0 * size * size * size / *seconds;
    (type.precision == Precision::TF32 ? rates.tf32
     : type.dtype == DType::BF16       ? rates.bf16
                                       : rates.f32) = rate;
  }
  return rates;
}

namespace {

/// The runtime's own kernels that add up two vectors of a block's threads, on
/// `count` pairs of them.
class SmallKernels {
public:
  static absl::StatusOr<SmallKernels> prepare(const MeasuredGpu &gpu,
                                              int count) {
    constexpr uint64_t bytes = 256 * sizeof(float);
    SmallKernels made;
    if (absl::Status s =
            keep(CollectiveKernels::load(*gpu.context, gpu.options.deadline),
                 made.kernels);
        !s.ok())
      return s;
    if (absl::Status s =
            keep(DeviceMemory::allocate(*gpu.context, count * 2 * bytes,
                                        "the operands of kernels"),
                 made.memory);
        !s.ok())
      return s;
    for (int i = 0; i < count; ++i) {
      const CUdeviceptr first = made.memory.address() + i * 2 * bytes;
      absl::StatusOr<BoxLaunch> launch = made.kernels->prepareReductions(
          DType::F32, Reduction::Sum,
          {{bytes, 1, bytes, bytes, {first, first + bytes}, {first}}});
      if (!launch.ok())
        return launch.status();
      made.launches.push_back(*std::move(launch));
    }
    return made;
  }

  absl::Status issue(int pair, const cuda::Stream &stream) const {
    return launches[pair].issue(stream);
  }

private:
  std::optional<CollectiveKernels> kernels;
  DeviceMemory memory;
  std::vector<BoxLaunch> launches;
};

} // namespace

/// Sets `times.stepSeconds` and `times.commandSeconds`.
static absl::Status measureStarts(const MeasuredGpu &gpu, GpuTimes &times) {
  constexpr int many = 200;
  absl::StatusOr<SmallKernels> kernels = SmallKernels::prepare(gpu, 1);
  if (!kernels.ok())
    return kernels.status();
  auto issue = [&] { return kernels->issue(0, *gpu.stream); };
  absl::StatusOr<double> one =
      timeInGraph(*gpu.stream, 1, gpu.options.deadline, issue);
  if (!one.ok())
    return one.status();
  absl::StatusOr<double> each =
      timeInGraph(*gpu.stream, many, gpu.options.deadline, issue);
  if (!each.ok())
    return each.status();
  times.commandSeconds = std::max(0.0, (many * *each - *one) / (many - 1));
  times.stepSeconds = std::max(0.0, *one - times.commandSeconds);
  return absl::OkStatus();
}

/// Sets `times.memory`, behind measureStarts.
static absl::Status measureMemory(const MeasuredGpu &gpu, GpuTimes &times) {
  absl::StatusOr<Copies> copies = Copies::allocate(*gpu.stream, copiedBytes);
  if (!copies.ok())
    return copies.status();
  // A longer distance has no higher rate, and it is the largest that counts.
  double least = 0;
  for (uint64_t bytes = copiedBytes; bytes >= leastCopied; bytes /= 2) {
    absl::StatusOr<double> seconds =
        timeInGraph(*gpu.stream, 8, gpu.options.deadline,
                    [&] { return copies->issue(*gpu.stream, bytes); });
    if (!seconds.ok())
      return seconds.status();
    const double moving =
        std::max(*seconds - times.commandSeconds, *seconds / 8);
    least = std::max(least, 2 * static_cast<double>(bytes) / moving);
    times.memory[2 * bytes] = least;
  }
  return absl::OkStatus();
}

/// Sets `times.hostBytesPerSecond`.
static absl::Status measureHost(const MeasuredGpu &gpu, GpuTimes &times) {
  constexpr uint64_t bytes = uint64_t(64) << 20;
  absl::StatusOr<PinnedMemory> host =
      PinnedMemory::allocate(*gpu.context, bytes, "a copy");
  if (!host.ok())
    return host.status();
  absl::StatusOr<DeviceMemory> device =
      DeviceMemory::allocate(*gpu.context, bytes, "a copy");
  if (!device.ok())
    return device.status();
  for (int pass = 0; pass < passes; ++pass) {
    absl::StatusOr<double> seconds =
        timeOn(*gpu.stream, repeats, gpu.options.deadline, [&] {
          return gpu.context->check(
              gpu.driver->memcpyHtoDAsync(device->address(), host->data(),
                                          bytes, gpu.stream->get()),
              "cuMemcpyHtoDAsync");
        });
    if (!seconds.ok())
      return seconds.status();
    times.hostBytesPerSecond = std::max(times.hostBytesPerSecond,
                                        static_cast<double>(bytes) / *seconds);
  }
  return absl::OkStatus();
}

/// Adds the GEMMs of `type` to `times`.
static absl::Status measureGemms(MeasuredGpu &gpu, const GemmType &type,
                                 absl::Span<const int64_t> sides,
                                 GpuTimes &times) {
  if (absl::Status s = gpu.fillMatrices(type.dtype); !s.ok())
    return s;
  auto measure = [&](int64_t rows, int64_t columns, int64_t terms,
                     const GemmForm &form) -> absl::StatusOr<double> {
    absl::StatusOr<std::unique_ptr<Gemm>> gemm =
        gpu.prepare(type, rows, columns, terms, form);
    if (!gemm.ok())
      return gemm.status();
    // Of long ones a few are enough.
    const double flops = 2.0 * rows * columns * terms;
    return timeInGraph(*gpu.stream, flops < 1e9 ? 16 : 2, gpu.options.deadline,
                       [&] { return gpu.issue(**gemm); });
  };
  for (int64_t rows : sides)
    for (int64_t columns : sides)
      for (int64_t terms : sides) {
        absl::StatusOr<double> seconds =
            measure(rows, columns, terms, plainForm);
        if (!seconds.ok())
          return seconds.status();
        times.gemms.push_back({type.name, rows, columns, terms, *seconds});
      }
  for (int64_t side : sides) {
    absl::StatusOr<double> plain = measure(side, side, side, plainForm);
    if (!plain.ok())
      return plain.status();
    for (const GemmForm &form : otherForms) {
      absl::StatusOr<double> seconds = measure(side, side, side, form);
      if (!seconds.ok())
        return seconds.status();
      times.factors.push_back({type.name, form.name, side, *seconds / *plain});
    }
  }
  return absl::OkStatus();
}

/// Sets `times.concurrentCommandSeconds`.
static absl::Status measureConcurrentStarts(const MeasuredGpu &gpu,
                                            GpuTimes &times) {
  constexpr int devices = 8, each = 25;
  absl::StatusOr<SmallKernels> kernels = SmallKernels::prepare(gpu, devices);
  if (!kernels.ok())
    return kernels.status();
  absl::StatusOr<Event> begun = Event::create(*gpu.context);
  if (!begun.ok())
    return begun.status();
  struct Branch {
    cuda::Stream stream;
    Event done;
  };
  std::vector<Branch> branches;
  for (int device = 0; device < devices; ++device) {
    absl::StatusOr<cuda::Stream> stream = cuda::Stream::create(*gpu.context);
    if (!stream.ok())
      return stream.status();
    absl::StatusOr<Event> done = Event::create(*gpu.context);
    if (!done.ok())
      return done.status();
    branches.push_back({*std::move(stream), *std::move(done)});
  }
  auto issueOn = [&](int device) -> absl::Status {
    Branch &branch = branches[device];
    if (absl::Status s = branch.stream.waitFor(*begun); !s.ok())
      return s;
    for (int i = 0; i < each; ++i)
      if (absl::Status s = kernels->issue(device, branch.stream); !s.ok())
        return s;
    if (absl::Status s = branch.done.record(branch.stream); !s.ok())
      return s;
    return gpu.stream->waitFor(branch.done);
  };
  absl::StatusOr<double> all =
      timeInGraph(*gpu.stream, 1, gpu.options.deadline, [&]() -> absl::Status {
        if (absl::Status s = begun->record(*gpu.stream); !s.ok())
          return s;
        for (int device = 0; device < devices; ++device)
          if (absl::Status s = issueOn(device); !s.ok())
            return s;
        return absl::OkStatus();
      });
  if (!all.ok())
    return all.status();
  times.concurrentCommandSeconds =
      std::max(0.0, *all - times.stepSeconds) / (devices * each);
  return absl::OkStatus();
}

absl::StatusOr<GpuTimes>
shardc::rt::cuda::measureTimes(const CudaOptions &options,
                               absl::Span<const int64_t> sides) {
  absl::StatusOr<std::unique_ptr<MeasuredGpu>> gpu = MeasuredGpu::open(options);
  if (!gpu.ok())
    return gpu.status();
  GpuTimes times{};
  if (absl::Status s = measureStarts(**gpu, times); !s.ok())
    return s;
  if (absl::Status s = measureConcurrentStarts(**gpu, times); !s.ok())
    return s;
  if (absl::Status s = measureMemory(**gpu, times); !s.ok())
    return s;
  if (absl::Status s = measureHost(**gpu, times); !s.ok())
    return s;
  if (absl::Status s = (*gpu)->allocateMatrices(
          *std::max_element(sides.begin(), sides.end()));
      !s.ok())
    return s;
  for (const GemmType &type : gemmTypes)
    if (absl::Status s = measureGemms(**gpu, type, sides, times); !s.ok())
      return s;
  return times;
}
