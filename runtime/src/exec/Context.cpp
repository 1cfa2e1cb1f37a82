//===- Context.cpp - Workers that run devices -----------------------------===//

#include "shardc-rt/Context.h"

#include "base/UsableCpus.h"
#include "exec/WorkerPool.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

Context::Context(std::unique_ptr<WorkerPool> pool) : pool(std::move(pool)) {}

Context::~Context() = default;

int Context::numThreads() const { return pool->size(); }

absl::StatusOr<std::unique_ptr<Context>>
Context::create(ContextOptions options) {
  if (options.threads < 0 || options.threads > 1024)
    return absl::InvalidArgumentError(absl::StrCat(
        "number of threads ", options.threads, ", expected 0 to 1024"));
  int threads = options.threads;
  if (threads == 0)
    threads = findUsableCpus().count();
  return std::unique_ptr<Context>(
      new Context(std::make_unique<WorkerPool>(threads)));
}
