//===- PreparedProgram.h - A program bound to its arenas --------*- C++ -*-===//
//
// All that can be known before a step is: addresses of every buffer on every
// device, kernels, matrix products, collectives. Running a step neither
// allocates nor looks anything up.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
#define SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H

#include "backends/cpu/Gemm.h"
#include "exec/KernelLibrary.h"
#include "exec/WorkerPool.h"
#include "shardc-rt/Collectives.h"
#include "shardc-rt/Plan.h"

#include "absl/status/statusor.h"

#include <memory>
#include <mutex>
#include <vector>

namespace shardc::rt {

/// What the devices of an executor share.
struct DeviceSet {
  const Plan &plan;
  const KernelLibrary &kernels;
  /// One per device.
  std::vector<char *> arenas;
  /// Kernel contexts: one row per device of coordinates, the seed, then the run
  /// of a loop (0).
  std::vector<int64_t> contexts;
  int64_t contextStride;

  int64_t size() const { return arenas.size(); }
};

class PreparedProgram {
public:
  static absl::StatusOr<std::unique_ptr<PreparedProgram>>
  prepare(const DeviceSet &devices, const ProgramSpec &spec,
          Collectives &collectives, int workers);

  const ProgramSpec &spec() const { return *program; }

  struct Counters {
    uint64_t wireBytes = 0;
    double communicationSeconds = 0;
  };

  /// The part of worker `worker`; every worker of the pool calls it in one job.
  /// `counters` is written by worker 0 only.
  void run(int worker, WorkerPool &pool, Counters &counters);

  /// The first error of a step in the last run.
  absl::Status takeError();

private:
  struct Step {
    enum class Kind { Launch, Gemm, Copy, Clear, Collective, Loop } kind;
    /// Buffer addresses: `operands` per device.
    std::vector<void *> table;
    int64_t operands = 0;
    /// By operand the bytes that each run moves it on; empty if none moves.
    std::vector<uint64_t> strides;

    KernelFunction kernel = nullptr;
    int64_t extent = 1, tileSize = 1;
    std::unique_ptr<PreparedGemm> gemm;
    bool hasBias = false;
    uint64_t bytes = 0;
    /// One for all runs, or one for each where operands move.
    std::vector<std::unique_ptr<PreparedCollective>> collectives;
    uint64_t wireBytes = 0;
    /// Of a loop, whose body is the next `length` steps.
    int64_t runs = 1;
    size_t length = 0;

    /// Whether it concerns one device at a time.
    bool isLocal() const {
      return kind != Kind::Collective && kind != Kind::Loop;
    }
    int64_t numTiles() const;
  };

  /// The steps [begin, end) in run `run` of a loop.
  struct Range {
    size_t begin, end;
    int64_t run = 0;
  };

  PreparedProgram(const DeviceSet &devices, const ProgramSpec &program)
      : devices(devices), program(&program) {}

  absl::Status addStep(const Command &command, int64_t runs,
                       Collectives &collectives);
  absl::Status addCollective(const CollectiveCommand &command, int64_t runs,
                             Collectives &collectives, Step &step) const;
  CollectiveSpec bindCollective(const CollectiveCommand &command,
                                int64_t run) const;
  void *address(int64_t device, uint32_t buffer, int64_t run = 0) const;
  void bind(Step &step, const std::vector<uint32_t> &buffers) const;

  void runRange(Range range, int worker, WorkerPool &pool, Counters &counters);
  void runKernel(const Step &step, int64_t device, int64_t run,
                 void *const *table, int64_t begin, int64_t end);
  void runTile(const Step &step, int64_t device, int64_t run, int64_t tile);
  void runWhole(const Step &step, int64_t device, int64_t run);
  void runCollective(const Step &step, int64_t run, int worker, int workers);
  void note(const absl::Status &status);

  const DeviceSet &devices;
  const ProgramSpec *program;
  std::vector<Step> steps;
  /// Whether workers take whole devices between collectives, or else share the
  /// tiles of every step.
  bool byDevice = true;

  std::mutex errorMutex;
  absl::Status error;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
