//===- Report.cpp - Errors and exit codes ---------------------------------===//

#include "Report.h"

#include "shardc/Support/Printable.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include <cstdlib>
#include <iostream>

using namespace shardc::run;
using namespace shardc::rt;

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

/// The error that has the exit code.
static absl::StatusCode statusCodeOf(int exitCode) {
  switch (exitCode) {
  case 1:
  case 2:
    return absl::StatusCode::kInvalidArgument;
  case 4:
    return absl::StatusCode::kResourceExhausted;
  case 5:
    return absl::StatusCode::kOutOfRange;
  case 6:
    return absl::StatusCode::kAborted;
  case 9:
    return absl::StatusCode::kUnavailable;
  default:
    return absl::StatusCode::kInternal;
  }
}

int shardc::run::report(const absl::Status &status) {
  return report(exitCodeOf(status), std::string(status.message()));
}

static absl::Status &reported() {
  static absl::Status status;
  return status;
}

absl::Status shardc::run::lastError() { return reported(); }

/// Of this one; null: there are no others.
static Processes *speaker = nullptr;

void shardc::run::speakFor(Processes &processes) { speaker = &processes; }
void shardc::run::stopSpeaking() { speaker = nullptr; }

bool shardc::run::mayPrint(const std::string &message) {
  if (!speaker)
    return true;
  // Only the first may set a key. Keys are short.
  absl::Status status = speaker->store().set(
      absl::StrCat("said ", message.size(), " ", message.substr(0, 1000)), "");
  return !absl::IsFailedPrecondition(status);
}

/// Prints it, whether or not others have said the same.
static void printAlways(const std::string &message) {
  std::string place;
  if (speaker)
    place = absl::StrCat("rank ", speaker->rank(), " of ", speaker->size(),
                         " on ", speaker->host(), ": ");
  // The runtime's errors may name the rank already.
  std::string rest = message;
  if (speaker)
    rest = std::string(
        absl::StripPrefix(rest, absl::StrCat("rank ", speaker->rank(), " of ",
                                             speaker->size(), ": ")));
  std::cerr << "shardc-run: " + place + printable(rest) + "\n";
}

void shardc::run::endNow(const absl::Status &status) {
  printAlways(std::string(status.message()));
  std::cout.flush();
  std::_Exit(exitCodeOf(status));
}

int shardc::run::report(int exitCode, const std::string &message) {
  if (exitCode != 0)
    reported() = absl::Status(statusCodeOf(exitCode), message);
  if (!mayPrint(message)) {
    // The first process that ends in an error ends the others, of which one is
    // about to print this.
    if (exitCode != 0)
      absl::SleepFor(absl::Milliseconds(500));
    return exitCode;
  }
  printAlways(message);
  return exitCode;
}
