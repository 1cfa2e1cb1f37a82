//===- Processes.h - CPU devices in several processes -----------*- C++ -*-===//
//
// mpirun and srun start a program several times. On CPUs the devices of a mesh
// are spread over these processes: each holds consecutive devices, as many as
// the others or one more, which share its memory. MPI carries what crosses
// processes. It is in a library of its own, libshardc-rt-mpi.so, which is
// opened here, so that the runtime also runs where there is no MPI.
//
// All processes make the same calls of an executor in the same order. All pass
// the same global arrays and get the same results, with the same bits for any
// number of processes.
//
// Thread-safety: one call at a time, of this and of the executors that use it,
// from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_PROCESSES_H
#define SHARDC_RT_PROCESSES_H

#include "shardc-rt/Store.h"

#include <memory>
#include <string>

namespace shardc::rt {

class Transport;

struct ProcessesOptions {
  /// Path of the library; empty: as the loader finds libshardc-rt-mpi.so.
  std::string mpiPath;
  /// Longest wait for other processes.
  absl::Duration deadline = absl::Minutes(5);
  /// Of the store (`StoreOptions`).
  absl::Duration heartbeat = absl::Seconds(5);
};

/// The connection of this process with the others that its launcher started.
class SHARDC_RT_API Processes {
public:
  /// Starts MPI and connects with the store of rank 0. Without an address in
  /// `ranks` rank 0 chooses one, and a free port, and tells the others.
  /// Unavailable: the library or MPI is missing, or MPI knows of other
  /// processes than `ranks`. Otherwise the errors of `Store::connect`.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Processes>>
  connect(Ranks ranks, const ProcessesOptions &options = {});
  /// Without `end` MPI is left as it is, since to finalize it takes all
  /// processes; then launchers report that this one ended early.
  ~Processes();
  Processes(const Processes &) = delete;
  Processes &operator=(const Processes &) = delete;

  int rank() const;
  int size() const;
  /// The number of processes on this machine, and its name.
  int localSize() const;
  const std::string &host() const;

  /// Of small values and failures.
  Store &store();

  /// For the runtime itself.
  Transport &transport();

  /// Waits until all processes call it, and finalizes MPI. DeadlineExceeded:
  /// another one does not. Otherwise the errors of `Store`.
  [[nodiscard]] absl::Status end();

private:
  struct State;
  SHARDC_RT_PRIVATE explicit Processes(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace shardc::rt

#endif // SHARDC_RT_PROCESSES_H
