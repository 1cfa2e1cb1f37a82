//===- Context.h - Workers that run devices ---------------------*- C++ -*-===//
//
// Thread-safety: executors of one context may be used at the same time from
// different threads; they take turns. A context is destroyed after its
// executors.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_CONTEXT_H
#define SHARDC_RT_CONTEXT_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/Export.h"

#include <memory>

namespace shardc::rt {

class WorkerPool;

struct ContextOptions {
  /// Worker threads, the calling one included; 0: as many as CPUs that this
  /// process may use, by its affinity mask and the CPU quota of its control
  /// group, rounded up.
  int threads = 0;
};

/// Owns the worker threads. Nothing is global; several contexts can live in one
/// process.
class SHARDC_RT_API Context {
public:
  /// InvalidArgument if `threads` is negative or above 1024.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Context>>
  create(ContextOptions options = {});
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  /// Worker threads, the calling one included.
  int numThreads() const;
  /// For the runtime itself.
  WorkerPool &workers() { return *pool; }

private:
  SHARDC_RT_PRIVATE explicit Context(std::unique_ptr<WorkerPool> pool);
  std::unique_ptr<WorkerPool> pool;
};

} // namespace shardc::rt

#endif // SHARDC_RT_CONTEXT_H
