//===- Crc32.h - Checksums of bytes -----------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_CRC32_H
#define SHARDC_RT_SRC_BASE_CRC32_H

#include "absl/strings/string_view.h"

#include <cstdint>

namespace shardc::rt {

/// The CRC-32, as of zlib, of bytes of which the first have the CRC-32 `before`
/// and `bytes` are the others; 0: there are no first.
uint32_t extendCrc32(uint32_t before, absl::string_view bytes);

/// The CRC-32 of bytes of which the first have the CRC-32 `before` and `bytes`
/// others have `after`.
uint32_t joinCrc32(uint32_t before, uint32_t after, uint64_t bytes);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_CRC32_H
