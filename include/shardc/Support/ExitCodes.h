//===- ExitCodes.h - Exit codes of the tools --------------------*- C++ -*-===//
//
// One list for all tools. Libraries never exit; their mains map errors here.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_EXITCODES_H
#define SHARDC_SUPPORT_EXITCODES_H

namespace shardc {

/// Exit codes of shardc's tools; part of their contract.
enum class ExitCode : int {
  Ok = 0,
  /// A wrong flag or a missing argument.
  Usage = 1,
  /// IR, plan, data or parameters that are not valid.
  InvalidInput = 2,
  /// The result differs from the reference.
  Mismatch = 3,
  /// A computer or a device has too little memory.
  OutOfMemory = 4,
  /// A loss that is infinite or not a number.
  NonFiniteLoss = 5,
  /// A deadline passed or a peer was lost.
  Deadline = 6,
  /// The requested backend is missing.
  Unavailable = 9,
  /// A fault of shardc itself.
  Internal = 70,
};

} // namespace shardc

#endif // SHARDC_SUPPORT_EXITCODES_H
