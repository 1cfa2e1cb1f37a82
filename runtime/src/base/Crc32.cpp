//===- Crc32.cpp - Checksums of bytes -------------------------------------===//

#include "base/Crc32.h"

#include <libdeflate.h>

uint32_t shardc::rt::extendCrc32(uint32_t before, absl::string_view bytes) {
  // For a null pointer it returns that of no bytes at all.
  return bytes.empty() ? before
                       : libdeflate_crc32(before, bytes.data(), bytes.size());
}
