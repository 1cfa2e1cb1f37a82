//===- Format.h - Numbers for people ----------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRAIN_FORMAT_H
#define SHARDC_RT_SRC_TRAIN_FORMAT_H

#include <cstdint>
#include <string>

namespace shardc::rt {

/// "9654 B", "48.0 MiB (50362374 B)".
std::string formatBytes(uint64_t bytes);

/// "1,234,567".
std::string formatCount(uint64_t count);

/// "12.3 ms", "4.56 s".
std::string formatSeconds(double seconds);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRAIN_FORMAT_H
