//===- Report.cpp - Errors and exit codes ---------------------------------===//

#include "Report.h"

#include "shardc/Support/Printable.h"

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

std::string shardc::run::printable(absl::string_view text) {
  return makePrintable({text.data(), text.size()});
}

int shardc::run::report(const absl::Status &status) {
  return report(exitCodeOf(status), std::string(status.message()));
}

int shardc::run::report(int exitCode, const std::string &message) {
  std::cerr << "shardc-run: " << printable(message) << "\n";
  return exitCode;
}
