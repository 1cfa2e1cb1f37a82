//===- MeasureGpus.h - GPUs as a machine file -------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_MEASUREGPUS_H
#define SHARDC_TOOLS_SHARDC_RUN_MEASUREGPUS_H

#include "Arguments.h"
#include "MeasureDevice.h"

#include "shardc-rt/Store.h"

#include "absl/status/statusor.h"

namespace shardc::run {

/// A machine whose devices are GPUs: the rates of a GEMM, of memory and of the
/// link from the host, and the times of commands. With `--gpus=1` they are
/// virtual devices of one GPU, with several GPUs, or processes that `store`
/// connects, one on each; then with the times of collectives between them. All
/// processes call it together; null: there are no others.
absl::StatusOr<Json> measureGpus(const Arguments &arguments, rt::Store *store);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_MEASUREGPUS_H
