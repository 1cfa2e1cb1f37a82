//===- CompareProcesses.h - Processes that run the same ---------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPAREPROCESSES_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPAREPROCESSES_H

#include "Arguments.h"

#include "shardc-rt/Store.h"

namespace shardc::run {

/// Checks that all processes were started with the same flags, the same model
/// or plan, and the same files of data and parameters; each calls it after
/// `readPipe`. Flags that concern one process or one host alone may differ.
/// Exit code 0, or the code and an error printed, which names each difference:
/// the flag with both values, the line of the model, the file.
int compareProcesses(const Arguments &arguments, rt::Store &store);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPAREPROCESSES_H
