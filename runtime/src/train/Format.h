//===- Format.h - Numbers for people ----------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRAIN_FORMAT_H
#define SHARDC_RT_SRC_TRAIN_FORMAT_H

#include "absl/strings/string_view.h"

#include <cstdint>
#include <ostream>
#include <string>

namespace shardc::rt {

/// "9654 B", "48.0 MiB (50362374 B)".
std::string formatBytes(uint64_t bytes);

/// "1,234,567".
std::string formatCount(uint64_t count);

/// "12.3 ms", "4.56 s".
std::string formatSeconds(double seconds);

/// In whole units, at most two of them: "45 s", "3 min 20 s", "2 h 5 min",
/// "3 d 4 h".
std::string formatTimeLeft(double seconds);

/// Writes "label          text" in lines of 80 columns, broken between words,
/// but not behind a number; those after the first begin below the text.
void printField(absl::string_view label, absl::string_view text,
                std::ostream &out);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRAIN_FORMAT_H
