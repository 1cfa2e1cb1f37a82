//===- Report.h - Errors and exit codes -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_REPORT_H
#define SHARDC_TOOLS_SHARDC_RUN_REPORT_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <string>

namespace shardc::run {

/// Prints an error of the runtime to standard error; returns its exit code.
int report(const absl::Status &status);

/// Prints `message` to standard error; returns `exitCode`.
int report(int exitCode, const std::string &message);

/// `text` with bytes escaped that are neither characters (UTF-8) nor spaces, so
/// that they do nothing to a terminal.
std::string printable(absl::string_view text);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_REPORT_H
