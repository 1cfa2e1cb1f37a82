//===- Processes.cpp - CPU devices in several processes -------------------===//

#include "shardc-rt/Processes.h"

#include "comm/MpiTransport.h"
#include "comm/Socket.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

using namespace shardc::rt;

struct Processes::State {
  std::unique_ptr<MpiTransport> transport;
  std::unique_ptr<Store> store;
  std::string host;
  int localSize = 1;
};

Processes::Processes(std::unique_ptr<State> state) : state(std::move(state)) {}

Processes::~Processes() { state->transport->watch(nullptr); }

int Processes::rank() const { return state->transport->rank(); }
int Processes::size() const { return state->transport->size(); }
int Processes::localSize() const { return state->localSize; }
const std::string &Processes::host() const { return state->host; }
Store &Processes::store() { return *state->store; }
Transport &Processes::transport() { return *state->transport; }

absl::StatusOr<std::unique_ptr<Processes>>
Processes::connect(Ranks ranks, const ProcessesOptions &options) {
  absl::StatusOr<std::unique_ptr<MpiTransport>> opened =
      MpiTransport::open(options.mpiPath, options.deadline);
  if (!opened.ok())
    return absl::Status(
        opened.status().code(),
        absl::StrCat(ranks.launcher, " started ", ranks.size,
                     " processes, and CPU devices in several processes need "
                     "MPI: ",
                     opened.status().message()));
  auto state = std::make_unique<State>();
  state->transport = *std::move(opened);
  MpiTransport &transport = *state->transport;
  if (transport.rank() != ranks.rank || transport.size() != ranks.size)
    return absl::UnavailableError(absl::StrCat(
        ranks.launcher, " calls this process rank ", ranks.rank, " of ",
        ranks.size, ", and MPI calls it rank ", transport.rank(), " of ",
        transport.size(),
        ": start with the mpirun of the MPI that libshardc-rt-mpi.so was built "
        "with, or with srun --mpi=pmix"));

  state->host = hostName();
  absl::StatusOr<std::vector<std::string>> hosts =
      transport.gatherAll(state->host);
  if (!hosts.ok())
    return hosts.status();
  state->localSize = 0;
  for (const std::string &host : *hosts)
    state->localSize += host == state->host;
  // The address and the port of rank 0.
  if (ranks.address.empty())
    ranks.address = state->localSize == ranks.size ? "127.0.0.1" : (*hosts)[0];
  if (ranks.port == 0) {
    absl::StatusOr<int> port = ranks.rank == 0
                                   ? Socket::findFreePort(ranks.address)
                                   : absl::StatusOr<int>(0);
    absl::StatusOr<std::vector<std::string>> ports =
        transport.gatherAll(absl::StrCat(port.ok() ? *port : 0));
    if (!ports.ok())
      return ports.status();
    if (!absl::SimpleAtoi((*ports)[0], &ranks.port) || ranks.port == 0)
      return port.ok() ? absl::UnavailableError("rank 0 has no free port")
                       : port.status();
  }
  absl::StatusOr<std::unique_ptr<Store>> store =
      Store::connect(ranks, {options.deadline, options.heartbeat});
  if (!store.ok())
    return store.status();
  state->store = *std::move(store);
  transport.watch(state->store.get());
  return std::unique_ptr<Processes>(new Processes(std::move(state)));
}

absl::Status Processes::end() {
  Store &store = *state->store;
  absl::Status status =
      store.gatherAll("ending", "", store.options().deadline).status();
  return status.ok() ? state->transport->finalize() : status;
}
