//===- Report.cpp - Errors and exit codes ---------------------------------===//

#include "Report.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iostream>

using namespace shardc::run;

/// The exit code for an error of the runtime.
static int exitCodeOf(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kOk:
    return 0;
  case absl::StatusCode::kInvalidArgument:
  case absl::StatusCode::kNotFound:
  case absl::StatusCode::kDataLoss:
  case absl::StatusCode::kFailedPrecondition:
    return 2;
  case absl::StatusCode::kResourceExhausted:
    return 4;
  case absl::StatusCode::kOutOfRange: // a loss that is not finite
    return 5;
  case absl::StatusCode::kDeadlineExceeded:
  case absl::StatusCode::kAborted: // another process failed or has gone
    return 6;
  case absl::StatusCode::kUnavailable:
  case absl::StatusCode::kUnimplemented:
    return 9;
  default:
    return 70;
  }
}

/// Bytes of the character of UTF-8 that `text` begins with; 0: it is none, or
/// one that controls.
static size_t characterBytes(absl::string_view text) {
  auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
  };
  uint8_t first = byte(0);
  if (first < 0x80)
    return (first >= 0x20 && first != 0x7f) || first == '\n' || first == '\t';
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4)
    return 0;
  for (size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  // U+0080 to U+009F control.
  return first == 0xc2 && byte(1) < 0xa0 ? 0 : size;
}

std::string shardc::run::printable(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    size_t size = characterBytes(text);
    if (size)
      absl::StrAppend(&shown, text.substr(0, size));
    else
      absl::StrAppend(
          &shown, "\\x",
          absl::Hex(static_cast<uint8_t>(text[0]), absl::kZeroPad2));
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return shown;
}

int shardc::run::report(const absl::Status &status) {
  return report(exitCodeOf(status), std::string(status.message()));
}

int shardc::run::report(int exitCode, const std::string &message) {
  std::cerr << "shardc-run: " << printable(message) << "\n";
  return exitCode;
}
