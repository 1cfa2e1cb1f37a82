//===- Ranks.cpp - Which of several processes this one is -----------------===//

#include "shardc-rt/Ranks.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <cstdlib>

using namespace shardc::rt;

namespace {

/// The variables of a launcher. `localSize` says, where it is set, how many of
/// the processes are on this machine.
struct Launcher {
  const char *name;
  const char *rank, *size, *localRank, *localSize;
};

constexpr Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // The script of a batch job has SLURM_PROCID as well; tasks of a step have
    // these.
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

constexpr int defaultPort = 29533;

class RanksReader {
public:
  RanksReader(Environment environment, const Launcher &launcher)
      : environment(environment), launcher(launcher) {}

  absl::StatusOr<Ranks> read() const;

private:
  /// A number of at least `least`.
  absl::StatusOr<int> number(const char *name, int least, int most) const;
  absl::Status findStore(Ranks &ranks) const;
  bool isOneMachine(const Ranks &ranks) const;

  Environment environment;
  const Launcher &launcher;
};

} // namespace

absl::StatusOr<int> RanksReader::number(const char *name, int least,
                                        int most) const {
  std::optional<std::string> text = environment(name);
  if (!text)
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is not set, but other variables of ", launcher.name, " are"));
  int value = 0;
  if (!absl::SimpleAtoi(*text, &value) || value < least || value > most)
    return absl::InvalidArgumentError(absl::StrCat(name, "=\"", *text,
                                                   "\": a number from ", least,
                                                   " to ", most, " expected"));
  return value;
}

bool RanksReader::isOneMachine(const Ranks &ranks) const {
  auto is = [&](const char *name, int value) {
    return environment(name) == std::to_string(value);
  };
  return launcher.localSize
             ? is(launcher.localSize, ranks.size)
             : is("SLURM_STEP_NUM_NODES", 1) || is("SLURM_NNODES", 1);
}

absl::Status RanksReader::findStore(Ranks &ranks) const {
  if (std::optional<std::string> address = environment("MASTER_ADDR"))
    ranks.address = *address;
  else if (isOneMachine(ranks))
    ranks.address = "127.0.0.1";
  if (ranks.address.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "MASTER_ADDR is not set: the machine of rank 0 of the ", ranks.size,
        " processes that ", launcher.name, " started"));
  if (environment("SHARDC_PORT")) {
    absl::StatusOr<int> port = number("SHARDC_PORT", 1, 65535);
    if (port.ok())
      ranks.port = *port;
    return port.status();
  }
  ranks.port = defaultPort;
  if (!environment("MASTER_PORT"))
    return absl::OkStatus();
  // Where torchrun listens on that port itself, the next one is ours.
  bool isTaken = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  absl::StatusOr<int> port = number("MASTER_PORT", 1, 65535 - isTaken);
  if (port.ok())
    ranks.port = *port + isTaken;
  return port.status();
}

absl::StatusOr<Ranks> RanksReader::read() const {
  Ranks ranks;
  ranks.launcher = launcher.name;
  constexpr int most = 1 << 20;
  for (auto [name, least, place] :
       {std::tuple(launcher.size, 1, &ranks.size),
        {launcher.rank, 0, &ranks.rank},
        {launcher.localRank, 0, &ranks.localRank}}) {
    absl::StatusOr<int> value = number(name, least, most);
    if (!value.ok())
      return value.status();
    *place = *value;
  }
  auto contradict = [&](const char *name, int value, const char *other,
                        int bound) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "=", value, " contradicts ", other, "=", bound));
  };
  if (ranks.rank >= ranks.size)
    return contradict(launcher.rank, ranks.rank, launcher.size, ranks.size);
  if (ranks.localRank > ranks.rank)
    return contradict(launcher.localRank, ranks.localRank, launcher.rank,
                      ranks.rank);
  if (launcher.localSize && environment(launcher.localSize)) {
    absl::StatusOr<int> local = number(launcher.localSize, 1, most);
    if (!local.ok())
      return local.status();
    if (*local > ranks.size)
      return contradict(launcher.localSize, *local, launcher.size, ranks.size);
    if (ranks.localRank >= *local)
      return contradict(launcher.localRank, ranks.localRank, launcher.localSize,
                        *local);
  }
  if (ranks.size > 1)
    if (absl::Status s = findStore(ranks); !s.ok())
      return s;
  return ranks;
}

absl::StatusOr<Ranks> shardc::rt::ranksFrom(Environment environment) {
  for (const Launcher &launcher : launchers) {
    // A script of a batch job is no task of a step.
    if (launcher.rank == absl::string_view("SLURM_PROCID") &&
        !environment(launcher.size))
      continue;
    if (environment(launcher.rank) || environment(launcher.size))
      return RanksReader(environment, launcher).read();
  }
  return Ranks();
}

absl::StatusOr<Ranks> shardc::rt::ranksFromEnvironment() {
  return ranksFrom([](const char *name) -> std::optional<std::string> {
    const char *value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
}
