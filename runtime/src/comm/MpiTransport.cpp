//===- MpiTransport.cpp - Messages through the plugin of MPI --------------===//

#include "comm/MpiTransport.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include <dlfcn.h>
#include <sched.h>

using namespace shardc::rt;

/// Tests of a wait before it gives up its core between two of them, and between
/// two looks at the clock. A test takes some tenths of a microsecond, but tens
/// of milliseconds on a busy computer: MPI, too, gives up the core there.
static constexpr int testsBeforeYield = 2000, testsPerLook = 8;

absl::StatusOr<std::unique_ptr<MpiTransport>>
MpiTransport::open(const std::string &path, absl::Duration deadline) {
  std::string name = path.empty() ? "libshardc-rt-mpi.so" : path;
  // Never closed. Open MPI opens modules, which look for its symbols among
  // those of all libraries.
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void *symbol = library ? dlsym(library, shardcMpiEntryName) : nullptr;
  if (!symbol) {
    const char *reason = dlerror();
    return absl::UnavailableError(
        absl::StrCat("looked for ", name, ": ", reason ? reason : "no reason"));
  }
  const ShardcMpiFunctions &mpi = *reinterpret_cast<ShardcMpiEntry>(symbol)();
  if (mpi.version != shardcMpiVersion)
    return absl::UnavailableError(
        absl::StrCat(name, " is of version ", mpi.version, ", expected ",
                     shardcMpiVersion, ": install the one of this runtime"));
  int32_t rank = 0, size = 1;
  if (int code = mpi.initialize(&rank, &size)) {
    char text[512] = {};
    mpi.describe(code, text, sizeof(text));
    return absl::UnavailableError(absl::StrCat("starting MPI: ", text));
  }
  return std::unique_ptr<MpiTransport>(
      new MpiTransport(mpi, rank, size, deadline));
}

absl::Status MpiTransport::check(int code, absl::string_view what) const {
  if (code == 0)
    return absl::OkStatus();
  char text[512] = {};
  mpi.describe(code, text, sizeof(text));
  return absl::InternalError(
      absl::StrCat("rank ", rank(), " of ", size(), ": ", what, ": ", text));
}

namespace {
/// Tells a store, which may be null, whom this process waits for, while it
/// lives.
class Waiting {
public:
  explicit Waiting(Store *store) : store(store) {}
  ~Waiting() {
    if (peer >= 0)
      store->setWaitsFor(-1);
  }
  Waiting(const Waiting &) = delete;
  Waiting &operator=(const Waiting &) = delete;

  /// For `rank`, from now on or again.
  void begin(int rank) {
    if (store)
      store->setWaitsFor(peer = rank);
  }
  int rank() const { return peer; }

private:
  Store *store;
  int peer = -1;
};
} // namespace

absl::Status MpiTransport::wait(Exchange exchange) {
  // Most waits are too short to be of interest to others.
  constexpr absl::Duration shortest = absl::Milliseconds(10);
  Waiting waiting(store);
  absl::Time start = absl::InfinitePast();
  for (int64_t tests = 1;; ++tests) {
    int32_t isDone = 0, peer = -1;
    bool looks = tests % testsPerLook == 0;
    if (absl::Status s =
            check(mpi.test(exchange, &isDone, looks ? &peer : nullptr),
                  "exchanging messages");
        !s.ok() || isDone)
      return s;
    if (tests > testsBeforeYield)
      sched_yield();
    if (!looks)
      continue;
    absl::Time now = absl::Now();
    if (start == absl::InfinitePast())
      start = now;
    if (store)
      if (absl::Status s = store->checkPeers(); !s.ok())
        return s;
    if (now - start >= shortest && peer != waiting.rank())
      waiting.begin(peer);
    if (now - start < deadline)
      continue;
    // What it does may take long.
    absl::Duration left =
        store ? deadline - store->idleTime(peer) : absl::ZeroDuration();
    if (left <= absl::ZeroDuration())
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank(), " of ", size(), ": rank ", peer,
                       " has not answered for ", absl::FormatDuration(deadline),
                       store ? "; " + store->describe(peer) : ""));
    start = now + left - deadline;
    waiting.begin(peer);
  }
}

absl::StatusOr<Transport::Exchange>
MpiTransport::begin(absl::Span<const Message> messages, uint32_t channel) {
  if (!failure.ok())
    return failure;
  posted.clear();
  for (const Message &message : messages)
    if (message.bytes > 0)
      posted.push_back(
          {message.peer, message.isReceived, message.data, message.bytes});
  Exchange begun = nullptr;
  if (posted.empty())
    return begun;
  failure = check(mpi.start(posted.data(), posted.size(), channel, &begun),
                  "sending messages");
  if (!failure.ok())
    return failure;
  return begun;
}

absl::Status MpiTransport::end(Exchange exchange) {
  if (failure.ok() && exchange)
    failure = wait(exchange);
  return failure;
}

void MpiTransport::advance() {
  if (failure.ok())
    failure = check(mpi.progress(), "moving messages");
}

absl::Status MpiTransport::finalize() {
  if (!failure.ok())
    return failure;
  failure = absl::FailedPreconditionError("MPI has been finalized");
  return check(mpi.finalize(), "ending MPI");
}
