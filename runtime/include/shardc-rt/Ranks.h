//===- Ranks.h - The ranks of several processes -----------------*- C++ -*-===//
//
// torchrun, mpirun and srun start a program several times and give each process
// its rank in variables of the environment.
//
// Thread-safety: `ranksFrom` may be called from any thread. So may
// `ranksFromEnvironment`, as long as no thread changes the environment.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_RANKS_H
#define SHARDC_RT_RANKS_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/Export.h"

#include "absl/functional/function_ref.h"

#include <optional>
#include <string>

namespace shardc::rt {

/// One of `size` processes that run a plan together.
struct Ranks {
  int rank = 0;
  int size = 1;
  /// Rank among the processes of this machine.
  int localRank = 0;
  /// The address of the store that rank 0 keeps (Store.h).
  std::string address;
  int port = 0;
  /// The launcher of the processes: "torchrun", "mpirun", "Slurm"; empty for a
  /// process that was started alone.
  std::string launcher;
};

/// The value of a variable of the environment; none: it is not set.
using Environment =
    absl::FunctionRef<std::optional<std::string>(const char *name)>;

/// Reads the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK), else of Open
/// MPI (OMPI_COMM_WORLD_*), else of a Slurm step (SLURM_PROCID and others),
/// else of another PMI (PMI_RANK, PMI_SIZE, MPI_LOCALRANKID): a launcher may
/// itself have been started by one that comes later. Without any of them there
/// is one process. MASTER_ADDR and MASTER_PORT are the address of rank 0; the
/// address may be missing where all processes are on one machine, the port
/// where there is no torchrun (default 29533). SHARDC_PORT replaces the port.
///
/// InvalidArgument names the variable that is missing, no number, or
/// contradicts another.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<Ranks>
ranksFrom(Environment environment);

/// `ranksFrom` the environment of this process.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<Ranks> ranksFromEnvironment();

} // namespace shardc::rt

#endif // SHARDC_RT_RANKS_H
