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

#include <map>
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
  /// Kernel contexts: one row per device of coordinates, then the seed.
  std::vector<int64_t> contexts;
  int64_t contextStride;

  int64_t size() const { return arenas.size(); }
};

class PreparedProgram {
public:
  /// A collective is run at its wait, and begun at its start where the backend
  /// can (`PreparedCollective::startsEarly`).
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
    enum class Kind { Launch, Gemm, Copy, Start, Wait } kind;
    /// Buffer addresses: `operands` per device.
    std::vector<void *> table;
    int64_t operands = 0;

    KernelFunction kernel = nullptr;
    int64_t extent = 1, tileSize = 1;
    std::unique_ptr<PreparedGemm> gemm;
    bool hasBias = false;
    uint64_t bytes = 0;
    PreparedCollective *collective = nullptr;
    uint64_t wireBytes = 0;

    /// Whether the devices run it without each other.
    bool isLocal() const { return kind != Kind::Start && kind != Kind::Wait; }
    int64_t numTiles() const;
  };

  PreparedProgram(const DeviceSet &devices, const ProgramSpec &program)
      : devices(devices), program(&program) {}

  absl::Status addStep(uint32_t number, Collectives &collectives);
  absl::Status addStart(uint32_t number, const CollectiveStartCommand &command,
                        Collectives &collectives);
  CollectiveSpec bindCollective(const CollectiveStartCommand &command) const;
  void *address(int64_t device, uint32_t buffer) const;
  void bind(Step &step, const std::vector<uint32_t> &buffers) const;

  void runTile(const Step &step, int64_t device, int64_t tile);
  void runWhole(const Step &step, int64_t device);
  void runTasks(const Step &step, int worker, int workers);
  void note(const absl::Status &status);

  const DeviceSet &devices;
  const ProgramSpec *program;
  std::vector<Step> steps;
  /// By the number of the command that starts them.
  std::map<uint32_t, std::unique_ptr<PreparedCollective>> collectives;
  /// Whether workers take whole devices between collectives, or else share the
  /// tiles of every step.
  bool byDevice = true;

  std::mutex errorMutex;
  absl::Status error;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PREPAREDPROGRAM_H
