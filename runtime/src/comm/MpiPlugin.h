//===- MpiPlugin.h - What the runtime asks of MPI ---------------*- C++ -*-===//
//
// The functions of libshardc-rt-mpi.so, the only code that knows MPI. The
// runtime opens it when a launcher has started several processes, so that it
// runs where there is no MPI. Plain C types, since the two may be compiled
// apart.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COMM_MPIPLUGIN_H
#define SHARDC_RT_SRC_COMM_MPIPLUGIN_H

#include <cstdint>

extern "C" {

struct ShardcMpiMessage {
  int32_t peer;
  int32_t isReceived; ///< 1: from the peer, 0: to it.
  void *data;
  uint64_t bytes;
};

/// All functions return 0, or an error code of MPI. One call at a time.
struct ShardcMpiFunctions {
  uint64_t version; ///< `shardcMpiVersion`.
  /// Once for each process.
  int (*initialize)(int32_t *rank, int32_t *size);
  /// Begins to send and receive messages, which match those of the same
  /// `channel` alone. `exchange` is a handle for `test`.
  int (*start)(const ShardcMpiMessage *messages, int64_t count,
               uint32_t channel, void **exchange);
  /// Sets `isDone` when all messages of the exchange have been sent or
  /// received; then the handle is no more. If not, and unless `waitsFor` is
  /// null, it gets the process of one that has not.
  int (*test)(void *exchange, int32_t *isDone, int32_t *waitsFor);
  /// Moves the messages of all exchanges, as far as they go without waiting.
  int (*progress)(void);
  /// Whether all processes are on one host.
  int32_t (*isOnOneHost)(void);
  /// When all processes have ended their exchanges.
  int (*finalize)(void);
  /// The meaning of an error code, at most `bytes` with the 0 at its end.
  void (*describe)(int code, char *text, uint64_t bytes);
};

constexpr uint64_t shardcMpiVersion = 4;

/// The one symbol of the plugin, by the name below.
using ShardcMpiEntry = const ShardcMpiFunctions *(*)(void);
constexpr char shardcMpiEntryName[] = "shardc_rt_mpi";

} // extern "C"

#endif // SHARDC_RT_SRC_COMM_MPIPLUGIN_H
