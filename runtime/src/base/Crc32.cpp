//===- Crc32.cpp - Checksums of bytes -------------------------------------===//

#include "base/Crc32.h"

#include <libdeflate.h>
#include <zlib.h>

uint32_t shardc::rt::extendCrc32(uint32_t before, absl::string_view bytes) {
  // For a null pointer it returns that of no bytes at all.
  return bytes.empty() ? before
                       : libdeflate_crc32(before, bytes.data(), bytes.size());
}

uint32_t shardc::rt::joinCrc32(uint32_t before, uint32_t after,
                               uint64_t bytes) {
  return crc32_combine64(before, after, bytes);
}
