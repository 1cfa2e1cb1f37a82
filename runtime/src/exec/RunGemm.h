//===- RunGemm.h - A GEMM on its own ----------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_RUNGEMM_H
#define SHARDC_RT_SRC_EXEC_RUNGEMM_H

#include "backends/cpu/Gemm.h"
#include "exec/Barriers.h"
#include "exec/WorkerPool.h"

namespace shardc::rt {

/// Runs the share of `worker` of a GEMM on its own, as `PreparedProgram` does
/// among others. All workers of `pool` call it in one job, at a time when
/// nobody else uses `operands.packed`. `afterTile` is called behind each tile.
template <typename Job>
void runGemm(const PreparedGemm &gemm, const GemmOperands &operands,
             WorkerPool &pool, int worker, Job afterTile) {
  const bool packsA = gemm.sharedFactor() == PreparedGemm::SharedFactor::A;
  for (int64_t round = 0; round < gemm.numRounds(); ++round) {
    if (int64_t tasks = gemm.numPackTasks(round); tasks > 0) {
      if (round > 0)
        pool.barrier();
      TaskRange range(tasks, worker, pool.size());
      for (int64_t task = range.begin; task < range.end; ++task)
        gemm.pack(packsA ? &operands.a : &operands.b, operands.packed, round,
                  task);
      pool.barrier();
    }
    TaskRange range(gemm.numTiles(), worker, pool.size());
    for (int64_t tile = range.begin; tile < range.end; ++tile) {
      gemm.run(operands, round, tile);
      afterTile();
    }
  }
}

inline void runGemm(const PreparedGemm &gemm, const GemmOperands &operands,
                    WorkerPool &pool, int worker) {
  runGemm(gemm, operands, pool, worker, [] {});
}

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_RUNGEMM_H
