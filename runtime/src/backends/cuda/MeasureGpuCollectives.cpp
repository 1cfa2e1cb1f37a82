//===- MeasureGpuCollectives.cpp - Collectives between GPUs ---------------===//

#include "backends/cuda/MeasureGpuCollectives.h"

#include "backends/cuda/TimeIssued.h"
#include "shardc-rt/HostArray.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

static constexpr int launches = 5, batches = 2;

absl::StatusOr<std::unique_ptr<MeasuredCollectives>>
MeasuredCollectives::open(const CudaOptions &options) {
  std::unique_ptr<MeasuredCollectives> made(new MeasuredCollectives(options));
  absl::StatusOr<std::unique_ptr<Driver>> driver =
      Driver::open(options.driverPath);
  if (!driver.ok())
    return driver.status();
  made->driver = *std::move(driver);
  if (options.store || options.gpus > 1) {
    absl::StatusOr<std::unique_ptr<Nccl>> library =
        Nccl::open(options.ncclPath);
    if (!library.ok())
      return library.status();
    made->nccl = *std::move(library);
  }
  for (int i = 0; i < options.gpus; ++i) {
    absl::StatusOr<std::unique_ptr<cuda::Context>> context =
        cuda::Context::create(*made->driver, options.gpu + i);
    if (!context.ok())
      return context.status();
    absl::StatusOr<cuda::Stream> stream = cuda::Stream::create(**context);
    if (!stream.ok())
      return stream.status();
    absl::StatusOr<Event> done = Event::create(**context);
    if (!done.ok())
      return done.status();
    made->gpus.push_back(
        {*std::move(context), *std::move(stream), *std::move(done)});
  }
  return made;
}

absl::Status MeasuredCollectives::connect(Mesh ofDevices) {
  collectives.reset();
  mesh = std::move(ofDevices);
  if (!nccl) {
    devices.resize(mesh.numDevices());
    std::iota(devices.begin(), devices.end(), 0);
    absl::StatusOr<std::unique_ptr<DeviceCollectives>> made =
        createVirtualCollectives(*gpus[0].context, mesh.numDevices(),
                                 options.deadline);
    if (made.ok())
      collectives = *std::move(made);
    return made.status();
  }
  const int64_t first =
      options.store ? options.store->ranks().rank * int64_t(gpus.size()) : 0;
  devices.clear();
  std::vector<LocalDevice> ours;
  for (size_t i = 0; i < gpus.size(); ++i) {
    devices.push_back(first + i);
    ours.push_back({devices.back(), gpus[i].context.get()});
  }
  absl::StatusOr<std::unique_ptr<Communicators>> communicators =
      Communicators::create(*nccl, mesh, std::move(ours), options.store,
                            options.deadline);
  if (!communicators.ok())
    return communicators.status();
  collectives = createNcclCollectives(*std::move(communicators));
  return absl::OkStatus();
}

std::vector<const cuda::Stream *>
MeasuredCollectives::streamsOfDevices() const {
  std::vector<const cuda::Stream *> streams;
  for (size_t i = 0; i < devices.size(); ++i)
    streams.push_back(&gpus[std::min(i, gpus.size() - 1)].stream);
  return streams;
}

absl::Status MeasuredCollectives::place(CollectiveSpec &spec,
                                        std::vector<DeviceMemory> &places) {
  for (CollectiveTensor &tensor : spec.tensors)
    for (size_t i = 0; i < devices.size(); ++i) {
      const cuda::Context &context =
          *gpus[std::min(i, gpus.size() - 1)].context;
      auto allocate =
          [&](const std::vector<int64_t> &shape) -> absl::StatusOr<void *> {
        absl::StatusOr<DeviceMemory> memory = DeviceMemory::allocate(
            context, numElements(shape) * byteSize(tensor.dtype),
            "the operands of a collective");
        if (!memory.ok())
          return memory.status();
        places.push_back(*std::move(memory));
        return reinterpret_cast<void *>(
            static_cast<uintptr_t>(places.back().address()));
      };
      absl::StatusOr<void *> in = allocate(tensor.inShape);
      if (!in.ok())
        return in.status();
      absl::StatusOr<void *> out = allocate(tensor.outShape);
      if (!out.ok())
        return out.status();
      tensor.in.push_back(*in);
      tensor.out.push_back(*out);
    }
  return absl::OkStatus();
}

absl::StatusOr<double>
MeasuredCollectives::timeLaunches(absl::Span<const Graph> graphs) {
  auto onGpus = [&](absl::FunctionRef<absl::Status(size_t)> call) {
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (gpus.size() > 1)
        if (absl::Status s = gpus[i].context->makeCurrent(); !s.ok())
          return s;
      if (absl::Status s = call(i); !s.ok())
        return s;
    }
    return absl::OkStatus();
  };
  return timeIssued(
      launches,
      [&] {
        return onGpus(
            [&](size_t i) { return graphs[i].launch(gpus[i].stream); });
      },
      [&] {
        if (absl::Status s = onGpus(
                [&](size_t i) { return gpus[i].done.record(gpus[i].stream); });
            !s.ok())
          return s;
        return onGpus([&](size_t i) {
          return gpus[i].done.wait(options.deadline, "measuring a collective");
        });
      });
}

absl::StatusOr<double> MeasuredCollectives::measure(CollectiveSpec spec) {
  std::vector<DeviceMemory> places;
  if (absl::Status s = place(spec, places); !s.ok())
    return s;
  absl::StatusOr<std::unique_ptr<DeviceCollective>> prepared =
      collectives->prepare(mesh, devices, spec);
  if (!prepared.ok())
    return prepared.status();
  const std::vector<const cuda::Stream *> streams = streamsOfDevices();
  // Drivers load code on first use, which no capture may do.
  if (absl::Status s = (*prepared)->issue(streams); !s.ok())
    return s;
  // Of long ones a few are enough.
  const int times = wireBytes(mesh, spec) < (1 << 20) ? 16 : 2;
  std::vector<const cuda::Stream *> captured;
  for (const Gpu &gpu : gpus)
    captured.push_back(&gpu.stream);
  absl::StatusOr<std::vector<Graph>> graphs =
      Graph::capture(captured, [&]() -> absl::Status {
        for (int i = 0; i < times; ++i)
          if (absl::Status s = (*prepared)->issue(streams); !s.ok())
            return s;
        return absl::OkStatus();
      });
  if (!graphs.ok())
    return graphs.status();
  double least = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < batches; ++batch) {
    absl::StatusOr<double> seconds = timeLaunches(*graphs);
    if (!seconds.ok())
      return seconds.status();
    least = std::min(least, *seconds / times);
  }
  return least;
}
