//===- Session.h - One run of shardc-run ------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_SESSION_H
#define SHARDC_TOOLS_SHARDC_RUN_SESSION_H

#include "Arguments.h"

namespace shardc::run {

/// Executes the command line; returns the exit code. Prints errors to standard
/// error.
int runSession(const Arguments &arguments);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_SESSION_H
