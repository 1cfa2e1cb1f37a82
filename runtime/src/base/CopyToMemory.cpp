//===- CopyToMemory.cpp - Copies that leave caches alone ------------------===//

#include "base/CopyToMemory.h"

#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

using namespace shardc::rt;

void shardc::rt::copyToMemory(void *to, const void *from, size_t bytes) {
#ifdef __x86_64__
  constexpr size_t width = sizeof(__m128i), line = 64, ahead = 1024;
  char *out = static_cast<char *>(to);
  const char *in = static_cast<const char *>(from);
  // A part of a line that passed the caches would be slow.
  size_t head = -reinterpret_cast<uintptr_t>(out) % line;
  if (bytes >= 4 * line) {
    std::memcpy(out, in, head);
    out += head;
    in += head;
    bytes -= head;
    for (; bytes >= line; bytes -= line, in += line, out += line) {
      // The hardware stops at the end of a page, and short runs have no time to
      // set it going. What is behind the last byte is only asked for.
      _mm_prefetch(reinterpret_cast<const char *>(
                       reinterpret_cast<uintptr_t>(in) + ahead),
                   _MM_HINT_NTA);
      for (size_t at = 0; at < line; at += width)
        _mm_stream_si128(
            reinterpret_cast<__m128i *>(out + at),
            _mm_loadu_si128(reinterpret_cast<const __m128i *>(in + at)));
    }
  }
  if (bytes > 0)
    std::memcpy(out, in, bytes);
#else
  if (bytes > 0)
    std::memcpy(to, from, bytes);
#endif
}

void shardc::rt::endCopiesToMemory() {
#ifdef __x86_64__
  // Stores that pass the caches are in no order with others.
  _mm_sfence();
#endif
}
