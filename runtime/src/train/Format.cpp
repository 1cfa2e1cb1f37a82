//===- Format.cpp - Numbers for people ------------------------------------===//

#include "train/Format.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

using namespace shardc::rt;

std::string shardc::rt::formatBytes(uint64_t bytes) {
  const char *unit = "KiB";
  double value = bytes / 1024.0;
  if (bytes < 10240)
    return absl::StrCat(bytes, " B");
  for (const char *next : {"MiB", "GiB", "TiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s (%d B)", value, unit, bytes);
}

std::string shardc::rt::formatCount(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(at, ",");
  return digits;
}

std::string shardc::rt::formatSeconds(double seconds) {
  if (seconds < 1e-3)
    return absl::StrFormat("%.0f us", seconds * 1e6);
  if (seconds < 1)
    return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.2f s", seconds);
}
