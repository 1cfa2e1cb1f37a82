//===- GpuBuffers.h - Buffers of the suite on a GPU -------------*- C++ -*-===//

#ifndef SHARDC_RT_CTS_GPUBUFFERS_H
#define SHARDC_RT_CTS_GPUBUFFERS_H

#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/PinnedMemory.h"
#include "backends/cuda/Stream.h"

#include <cstdlib>
#include <map>

namespace shardc::rt::test {

/// The library that the variable of the environment names, or the stand-in.
inline std::string libraryOf(const char *variable) {
  const char *path = std::getenv(variable);
  return path ? path : STAND_IN;
}

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

  /// To the GPU, behind what its stream has been given.
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
  struct Buffer {
    cuda::DeviceMemory memory;
    cuda::PinnedMemory pinned;
    uint64_t bytes;
  };

  const cuda::Context &context;
  const cuda::Stream &stream;
  std::map<const void *, Buffer> buffers;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_CTS_GPUBUFFERS_H
