//===- VirtualGpu.cpp - Collectives of one GPU under the suite ------------===//

#include "VirtualGpu.h"

#include "GpuBuffers.h"

#include "backends/cuda/Collectives.h"
#include "shardc-rt/HostArray.h"

#include <iostream>
#include <numeric>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

class OnGpu : public PreparedCollective {
public:
  OnGpu(GpuBuffers buffers, std::unique_ptr<cuda::DeviceCollective> collective,
        const cuda::Stream &stream, int64_t devices)
      : buffers(std::move(buffers)), collective(std::move(collective)),
        streams(devices, &stream) {}

  int64_t numTasks() const override { return 1; }
  absl::Status runTask(int64_t) override {
    if (absl::Status s = buffers.toGpu(); !s.ok())
      return s;
    if (absl::Status s = collective->issue(streams); !s.ok())
      return s;
    return buffers.toHost();
  }

private:
  GpuBuffers buffers;
  std::unique_ptr<cuda::DeviceCollective> collective;
  std::vector<const cuda::Stream *> streams;
};

class VirtualGpu : public Collectives {
public:
  absl::Status open(int64_t devices) {
    auto opened = cuda::Driver::open(libraryOf("SHARDC_LIBCUDA"));
    if (!opened.ok())
      return opened.status();
    driver = *std::move(opened);
    auto retained = cuda::Context::create(*driver, 0);
    if (!retained.ok())
      return retained.status();
    context = *std::move(retained);
    pool = std::make_unique<BufferPool>(*context);
    auto created = cuda::Stream::create(*context);
    if (!created.ok())
      return created.status();
    stream = std::make_unique<cuda::Stream>(*std::move(created));
    auto made =
        cuda::createVirtualCollectives(*context, devices, absl::Minutes(1));
    if (!made.ok())
      return made.status();
    backend = *std::move(made);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    GpuBuffers buffers(*pool, *stream);
    for (CollectiveTensor &tensor : spec.tensors) {
      uint64_t width = byteSize(tensor.dtype);
      for (const void *&in : tensor.in) {
        auto place = buffers.add(in, numElements(tensor.inShape) * width);
        if (!place.ok())
          return place.status();
        in = *place;
      }
      for (void *&out : tensor.out) {
        auto place = buffers.add(out, numElements(tensor.outShape) * width);
        if (!place.ok())
          return place.status();
        out = *place;
      }
    }
    std::vector<int64_t> devices(mesh.numDevices());
    std::iota(devices.begin(), devices.end(), 0);
    auto collective = backend->prepare(mesh, devices, spec);
    if (!collective.ok())
      return collective.status();
    return std::make_unique<OnGpu>(std::move(buffers), *std::move(collective),
                                   *stream, mesh.numDevices());
  }

private:
  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::Context> context;
  std::unique_ptr<BufferPool> pool;
  std::unique_ptr<cuda::Stream> stream;
  std::unique_ptr<cuda::DeviceCollectives> backend;
};

} // namespace

std::unique_ptr<Collectives>
shardc::rt::test::createVirtualGpuCollectives(const Mesh &mesh) {
  auto gpu = std::make_unique<VirtualGpu>();
  if (absl::Status s = gpu->open(mesh.numDevices()); !s.ok()) {
    std::cerr << s.message() << "\n";
    return nullptr;
  }
  return gpu;
}
