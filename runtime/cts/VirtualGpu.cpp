//===- VirtualGpu.cpp - Collectives of one GPU under the suite ------------===//

#include "VirtualGpu.h"

#include "backends/cuda/Collectives.h"
#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/PinnedMemory.h"
#include "shardc-rt/HostArray.h"

#include <cstdlib>
#include <iostream>
#include <map>

using namespace shardc::rt;

namespace {

/// The buffers of a collective, on the host and on the GPU. Operands that are
/// results are one buffer.
class GpuBuffers {
public:
  GpuBuffers(const cuda::Context &context, const cuda::Stream &stream)
      : context(context), stream(stream) {}

  /// Where `host`, of so many bytes, is on the GPU.
  absl::StatusOr<void *> add(const void *host, uint64_t bytes) {
    auto found = buffers.find(host);
    if (found == buffers.end()) {
      auto memory = cuda::DeviceMemory::allocate(context, bytes, "a buffer");
      auto pinned = cuda::PinnedMemory::allocate(context, bytes, "a buffer");
      if (!memory.ok() || !pinned.ok())
        return memory.ok() ? pinned.status() : memory.status();
      found = buffers
                  .emplace(host, Buffer{*std::move(memory), *std::move(pinned),
                                        bytes})
                  .first;
    }
    return reinterpret_cast<void *>(
        static_cast<uintptr_t>(found->second.memory.address()));
  }

  absl::Status toGpu() {
    for (auto &[host, buffer] : buffers)
      if (buffer.bytes > 0) {
        std::memcpy(buffer.pinned.data(), host, buffer.bytes);
        if (absl::Status s =
                context.check(context.driver().memcpyHtoDAsync(
                                  buffer.memory.address(), buffer.pinned.data(),
                                  buffer.bytes, stream.get()),
                              "copying to the GPU");
            !s.ok())
          return s;
      }
    return absl::OkStatus();
  }

  absl::Status toHost() {
    for (auto &[host, buffer] : buffers)
      if (buffer.bytes > 0)
        if (absl::Status s =
                context.check(context.driver().memcpyDtoHAsync(
                                  buffer.pinned.data(), buffer.memory.address(),
                                  buffer.bytes, stream.get()),
                              "copying from the GPU");
            !s.ok())
          return s;
    absl::StatusOr<cuda::Event> done = cuda::Event::create(context);
    if (!done.ok())
      return done.status();
    if (absl::Status s = done->record(stream); !s.ok())
      return s;
    if (absl::Status s = done->wait(absl::Minutes(1), "a collective"); !s.ok())
      return s;
    for (auto &[host, buffer] : buffers)
      if (buffer.bytes > 0)
        std::memcpy(const_cast<void *>(host), buffer.pinned.data(),
                    buffer.bytes);
    return absl::OkStatus();
  }

private:
  struct Buffer {
    cuda::DeviceMemory memory;
    cuda::PinnedMemory pinned;
    uint64_t bytes;
  };

  const cuda::Context &context;
  const cuda::Stream &stream;
  std::map<const void *, Buffer> buffers;
};

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
  absl::Status open() {
    const char *path = std::getenv("SHARDC_LIBCUDA");
    auto opened = cuda::Driver::open(path ? path : STAND_IN);
    if (!opened.ok())
      return opened.status();
    driver = *std::move(opened);
    auto retained = cuda::Context::create(*driver, 0);
    if (!retained.ok())
      return retained.status();
    context = *std::move(retained);
    auto created = cuda::Stream::create(*context);
    if (!created.ok())
      return created.status();
    stream = std::make_unique<cuda::Stream>(*std::move(created));
    auto made = cuda::createVirtualCollectives(*context);
    if (made.ok())
      backend = *std::move(made);
    return made.status();
  }

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    GpuBuffers buffers(*context, *stream);
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
    auto collective = backend->prepare(mesh, spec);
    if (!collective.ok())
      return collective.status();
    return std::make_unique<OnGpu>(std::move(buffers), *std::move(collective),
                                   *stream, mesh.numDevices());
  }

private:
  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::Context> context;
  std::unique_ptr<cuda::Stream> stream;
  std::unique_ptr<cuda::DeviceCollectives> backend;
};

} // namespace

std::unique_ptr<Collectives> shardc::rt::test::createVirtualGpuCollectives() {
  auto gpu = std::make_unique<VirtualGpu>();
  if (absl::Status s = gpu->open(); !s.ok()) {
    std::cerr << s.message() << "\n";
    return nullptr;
  }
  return gpu;
}
