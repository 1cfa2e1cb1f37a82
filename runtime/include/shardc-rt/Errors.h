//===- Errors.h - How the runtime reports errors ----------------*- C++ -*-===//
//
// A function that can fail returns absl::Status or absl::StatusOr. Nothing
// throws, exits or aborts on bad input. A message names the place of the error,
// the found and the expected value. The codes mean the same everywhere:
//
//   InvalidArgument     a value that the caller passes, or that an input file
//                       holds, does not fit the plan or the function
//   NotFound            no file, tensor or program has this name
//   FailedPrecondition  the call is right, but not at this time: runs are in
//                       flight, or parameters have no values (Executor.h)
//   OutOfRange          training has reached a loss that is not finite
//   ResourceExhausted   there is not enough memory
//   DataLoss            a plan is damaged or of another version, or its machine
//                       code does not load
//   Unavailable         this machine lacks a device, a library or a feature of
//                       its CPU
//   DeadlineExceeded    a GPU or another process did not answer in time
//   Aborted             another process has failed or gone
//   Unimplemented       the plan needs something that this executor lacks
//   Internal            a library or a driver failed; the message has its words
//
// Thread-safety: statuses are values. Threads may share a constant one.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_ERRORS_H
#define SHARDC_RT_ERRORS_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#endif // SHARDC_RT_ERRORS_H
