//===- Format.cpp - Numbers for people ------------------------------------===//

#include "train/Format.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <algorithm>

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

std::string shardc::rt::formatTimeLeft(double seconds) {
  // A thousand days are enough, and fit.
  int64_t whole = static_cast<int64_t>(std::min(seconds, 86400e3) + 0.5);
  if (whole < 60)
    return absl::StrCat(whole, " s");
  if (whole < 3600)
    return absl::StrCat(whole / 60, " min ", whole % 60, " s");
  if (whole < 86400)
    return absl::StrCat(whole / 3600, " h ", whole % 3600 / 60, " min");
  return absl::StrCat(whole / 86400, " d ", whole % 86400 / 3600, " h");
}

void shardc::rt::printField(absl::string_view label, absl::string_view text,
                            std::ostream &out) {
  constexpr size_t columns = 80, indent = 15;
  out << absl::StrFormat("%-*s", static_cast<int>(indent) - 1, label);
  size_t column = indent - 1;
  std::vector<absl::string_view> words =
      absl::StrSplit(text, ' ', absl::SkipEmpty());
  for (size_t i = 0; i < words.size();) {
    // A number stays on a line with its unit, and with the same number in
    // parentheses.
    std::string piece(words[i++]);
    for (; i < words.size() && (absl::ascii_isdigit(words[i - 1].back()) ||
                                absl::StartsWith(words[i], "("));
         ++i)
      absl::StrAppend(&piece, " ", words[i]);
    if (column > indent && column + 1 + piece.size() > columns) {
      out << "\n" << std::string(indent - 1, ' ');
      column = indent - 1;
    }
    out << " " << piece;
    column += 1 + piece.size();
  }
  out << "\n";
}
