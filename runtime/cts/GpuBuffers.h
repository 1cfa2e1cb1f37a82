//===- GpuBuffers.h - Buffers of the suite on a GPU -------------*- C++ -*-===//

#ifndef SHARDC_RT_CTS_GPUBUFFERS_H
#define SHARDC_RT_CTS_GPUBUFFERS_H

#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/Stream.h"

#include <cstdlib>
#include <map>

namespace shardc::rt::test {

/// The library that the variable of the environment names, or the fake.
inline std::string libraryOf(const char *variable) {
  const char *path = std::getenv(variable);
  return path ? path : FAKE_LIBRARY;
}

/// Memory of `bytes` bytes on a GPU and on the host.
struct Buffer {
  cuda::DeviceMemory memory;
  cuda::PinnedMemory pinned;
  uint64_t bytes;
};

/// A pool of buffers that cases reuse, since allocating takes longer than a
/// collective. It must be destroyed before the context.
class BufferPool {
public:
  explicit BufferPool(const cuda::Context &context) : context(context) {}

  absl::StatusOr<Buffer> take(uint64_t bytes) {
    if (auto found = unused.find(bytes); found != unused.end()) {
      Buffer buffer = std::move(found->second);
      unused.erase(found);
      return buffer;
    }
    auto memory = cuda::DeviceMemory::allocate(context, bytes, "a buffer");
    auto pinned = cuda::PinnedMemory::allocate(context, bytes, "a buffer");
    if (!memory.ok() || !pinned.ok())
      return memory.ok() ? pinned.status() : memory.status();
    return Buffer{*std::move(memory), *std::move(pinned), bytes};
  }
  void give(Buffer buffer) { unused.emplace(buffer.bytes, std::move(buffer)); }

  const cuda::Context &context;

private:
  std::multimap<uint64_t, Buffer> unused;
};

/// The buffers of a collective, on the host and on the GPU. Operands that are
/// results are one buffer.
class GpuBuffers {
public:
  GpuBuffers(BufferPool &pool, const cuda::Stream &stream)
      : pool(pool), context(pool.context), stream(stream) {}
  GpuBuffers(GpuBuffers &&other) = default;
  ~GpuBuffers() {
    for (auto &[host, buffer] : buffers)
      pool.give(std::move(buffer));
  }

  /// The address on the GPU of `host`, which has `bytes` bytes.
  absl::StatusOr<void *> add(const void *host, uint64_t bytes) {
    auto found = buffers.find(host);
    if (found == buffers.end()) {
      absl::StatusOr<Buffer> buffer = pool.take(bytes);
      if (!buffer.ok())
        return buffer.status();
      found = buffers.emplace(host, *std::move(buffer)).first;
    }
    return reinterpret_cast<void *>(
        static_cast<uintptr_t>(found->second.memory.address()));
  }

  /// To the GPU, behind the earlier work of its stream.
  absl::Status toGpu() {
    if (absl::Status s = context.makeCurrent(); !s.ok())
      return s;
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

  /// Back to the host, and waits for it.
  absl::Status toHost() {
    if (absl::Status s = context.makeCurrent(); !s.ok())
      return s;
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
  BufferPool &pool;
  const cuda::Context &context;
  const cuda::Stream &stream;
  std::map<const void *, Buffer> buffers;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_CTS_GPUBUFFERS_H
