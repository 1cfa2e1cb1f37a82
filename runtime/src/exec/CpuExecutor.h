//===- CpuExecutor.h - Runs a plan on virtual CPU devices -------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_CPUEXECUTOR_H
#define SHARDC_RT_SRC_EXEC_CPUEXECUTOR_H

#include "collectives/Collectives.h"
#include "comm/Transport.h"
#include "shardc-rt/Executor.h"

namespace shardc::rt {

/// As `Executor::create`, with these collectives, between the processes of
/// `transport`; null: in one process. Borrows the transport.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Executor>>
createCpuExecutor(Context &context, std::shared_ptr<const Plan> plan,
                  ExecutorOptions options, Transport *transport,
                  std::unique_ptr<Collectives> collectives);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_CPUEXECUTOR_H
