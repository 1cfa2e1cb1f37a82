//===- Report.h - Errors and exit codes -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_REPORT_H
#define SHARDC_TOOLS_SHARDC_RUN_REPORT_H

#include "shardc-rt/Processes.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <string>

namespace shardc::run {

/// Prints an error of the runtime to standard error; returns its exit code.
int report(const absl::Status &status);

/// Prints `message` to standard error; returns `exitCode`.
int report(int exitCode, const std::string &message);

/// The last error with an exit code that was printed, or left out.
absl::Status lastError();

/// Prints an error of the runtime and ends the process with its exit code, from
/// any thread, while others may never end what they do.
[[noreturn]] void endNow(const absl::Status &status);

/// From now on what this process prints by `report` begins with its rank and
/// its machine, and is left out if another one has said the same. `processes`
/// is borrowed until `stopSpeaking`.
void speakFor(rt::Processes &processes);
void stopSpeaking();

/// Whether this process is the one of all to print `message`.
bool mayPrint(const std::string &message);

/// `text` with bytes escaped that are neither characters (UTF-8) nor spaces, so
/// that they do nothing to a terminal.
std::string printable(absl::string_view text);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_REPORT_H
