//===- Context.h - Workers that run devices ---------------------*- C++ -*-===//

#ifndef SHARDC_RT_CONTEXT_H
#define SHARDC_RT_CONTEXT_H

#include "absl/status/statusor.h"

#include <memory>

namespace shardc::rt {

class WorkerPool;

struct ContextOptions {
  /// Worker threads, the calling one included; 0: as many as cores.
  int threads = 0;
};

/// Owns the worker threads. Everything of the runtime hangs off a context;
/// several can live in one process. Executors that share a context take turns.
class Context {
public:
  /// InvalidArgument if `threads` is negative or above 1024.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Context>>
  create(ContextOptions options = {});
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  int numThreads() const;
  WorkerPool &workers() { return *pool; }

private:
  explicit Context(std::unique_ptr<WorkerPool> pool);
  std::unique_ptr<WorkerPool> pool;
};

} // namespace shardc::rt

#endif // SHARDC_RT_CONTEXT_H
