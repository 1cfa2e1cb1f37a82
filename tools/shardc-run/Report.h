//===- Report.h - Errors and exit codes -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_REPORT_H
#define SHARDC_TOOLS_SHARDC_RUN_REPORT_H

#include "absl/status/status.h"

#include <string>

namespace shardc::run {

/// Prints an error of the runtime to standard error; returns its exit code.
int report(const absl::Status &status);

/// Prints `message` to standard error; returns `exitCode`.
int report(int exitCode, const std::string &message);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_REPORT_H
