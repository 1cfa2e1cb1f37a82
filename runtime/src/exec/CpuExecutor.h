//===- CpuExecutor.h - Runs a plan on virtual CPU devices -------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_CPUEXECUTOR_H
#define SHARDC_RT_SRC_EXEC_CPUEXECUTOR_H

#include "collectives/Collectives.h"
#include "shardc-rt/Executor.h"

namespace shardc::rt {

/// As `Executor::create`, with other collectives in place of those in process.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Executor>>
createCpuExecutor(Context &context, std::shared_ptr<const Plan> plan,
                  ExecutorOptions options,
                  std::unique_ptr<Collectives> collectives);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_CPUEXECUTOR_H
