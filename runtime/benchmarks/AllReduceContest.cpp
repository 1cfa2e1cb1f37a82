//===- AllReduceContest.cpp - All-reduces beside those of MPI -------------===//
//
// Processes with a device each add up arrays of f32, in turns by the runtime's
// collectives, in a fixed order, and by MPI_Allreduce, in any order:
//
//   mpirun -n 2 shardc-bench-allreduce [ROUNDS [best]]
//
// Prints a line of JSON for each size: "bytes", the seconds of "ours" and of
// "mpi", medians over rounds of the slowest process, and the median "ratio" of
// the two in one round. Then those of some milliseconds of GEMMs, "compute",
// and of the GEMMs between start and finish of our all-reduce, "together".
// With `best` all are those of the best rounds, which on a busy computer are
// undisturbed. "error" if sums differ from the expected ones.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/Gemm.h"
#include "base/Memory.h"
#include "collectives/BetweenProcesses.h"
#include "comm/MpiTransport.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <mpi.h>
#include <nlohmann/json.hpp>

using namespace shardc::rt;

/// Bytes of the arrays.
static constexpr int64_t least = 4 << 10, most = 64 << 20;
/// Of a turn, and of the computation above an all-reduce.
static constexpr double turnSeconds = 0.02, computeSeconds = 0.005;

static double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

/// Of the slowest process, for one of `count` calls.
static double secondsOf(int64_t count, const std::function<void()> &call) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int64_t i = 0; i < count; ++i)
    call();
  double own = (MPI_Wtime() - start) / count, all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

/// Runs a collective from `part` on.
static absl::Status run(PreparedCollective *part) {
  for (; part; part = part->next())
    for (int64_t task = 0; task < part->numTasks(); ++task)
      if (absl::Status status = part->runTask(task); !status.ok())
        return status;
  return absl::OkStatus();
}

namespace {

/// What a process computes: GEMMs of some tens of microseconds, as many as take
/// `computeSeconds`, like the tiles of a large one.
class Computation {
public:
  Computation();
  /// Moves messages between two of them.
  void run(Transport &transport);

private:
  static constexpr int64_t rows = 128, columns = 256, depth = 256;
  void runOnce();

  std::unique_ptr<PreparedGemm> gemm;
  std::vector<float> a, b, c;
  std::vector<char> packed;
  int64_t count = 1;
};

struct Arguments {
  int64_t rounds = 15;
  bool best = false;
  bool sends = false; ///< Messages where memory could be read in place.
};

} // namespace

Computation::Computation()
    : a(rows * depth, 0.5f), b(depth * columns, 0.25f), c(rows * columns) {
  GemmCommand command{};
  command.bias = -1;
  command.batch = 1;
  command.m = rows;
  command.n = columns;
  command.k = depth;
  gemm = PreparedGemm::prepare(command, {});
  packed.resize(gemm->packedBytes());
  double least = computeSeconds;
  for (int i = 0; i < 100; ++i) {
    double start = MPI_Wtime();
    runOnce();
    least = std::min(least, MPI_Wtime() - start);
  }
  count = computeSeconds / least;
  MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
}

void Computation::runOnce() {
  GemmOperands operands{a.data(), b.data(), nullptr, c.data(), packed.data()};
  const bool packsA = gemm->sharedFactor() == PreparedGemm::SharedFactor::A;
  for (int64_t round = 0; round < gemm->numRounds(); ++round) {
    for (int64_t task = 0; task < gemm->numPackTasks(round); ++task)
      gemm->pack(packsA ? &operands.a : &operands.b, packed.data(), round,
                 task);
    for (int64_t tile = 0; tile < gemm->numTiles(); ++tile)
      gemm->run(operands, round, tile);
  }
}

void Computation::run(Transport &transport) {
  for (int64_t i = 0; i < count; ++i) {
    runOnce();
    transport.progress();
  }
}

static absl::Status measure(Transport &transport, Collectives &collectives,
                            Computation &computation, int64_t bytes,
                            const Arguments &arguments) {
  const int64_t elements = bytes / sizeof(float);
  const int own = transport.rank(), size = transport.size();
  // Both in large pages; ours as an executor has them.
  Memory memory, memoryOfMpi;
  if (!(arguments.sends ? memory.allocate(2 * bytes)
                        : memory.allocateVisible(2 * bytes)) ||
      !memoryOfMpi.allocate(2 * bytes))
    return absl::ResourceExhaustedError("out of memory");
  auto *in = reinterpret_cast<float *>(memory.get()), *out = in + elements;
  auto *inOfMpi = reinterpret_cast<float *>(memoryOfMpi.get()),
       *byMpi = inOfMpi + elements;
  for (int64_t i = 0; i < elements; ++i)
    in[i] = inOfMpi[i] = own + i % 5;
  CollectiveTensor tensor{DType::F32, {elements}, {elements}, 0, -1, {}, {}};
  tensor.in.resize(size);
  tensor.out.resize(size);
  tensor.in[own] = in;
  tensor.out[own] = out;
  collectives.useMemory(memory);
  Mesh mesh({{"d", size}});
  auto prepared = collectives.prepare(
      mesh, {CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {tensor}});
  if (!prepared.ok())
    return prepared.status();
  absl::Status status;
  auto ours = [&] {
    status.Update(run((*prepared)->start()));
    status.Update(run(prepared->get()));
  };
  auto compute = [&] { computation.run(transport); };
  auto together = [&] {
    status.Update(run((*prepared)->start()));
    compute();
    status.Update(run(prepared->get()));
  };
  auto mpi = [&] {
    MPI_Allreduce(inOfMpi, byMpi, static_cast<int>(elements), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  };
  secondsOf(2, ours);
  secondsOf(2, mpi);
  // Of the best some are short enough that nothing interrupts them.
  const double turn = arguments.best ? turnSeconds / 10 : turnSeconds;
  int64_t count = std::clamp<int64_t>(turn / secondsOf(2, mpi), 1, 2000);
  std::vector<double> times, timesOfMpi, ratios, computing, both;
  for (int64_t round = 0; round < arguments.rounds; ++round) {
    times.push_back(secondsOf(count, ours));
    timesOfMpi.push_back(secondsOf(count, mpi));
    ratios.push_back(times.back() / timesOfMpi.back());
    computing.push_back(secondsOf(1, compute));
    both.push_back(secondsOf(1, together));
  }
  if (status.ok() && !std::equal(out, out + elements, byMpi))
    status = absl::InternalError("other sums than those of MPI");
  if (!status.ok())
    return status;
  auto figure = [&](const std::vector<double> &seconds) {
    return arguments.best ? *std::min_element(seconds.begin(), seconds.end())
                          : median(seconds);
  };
  if (own == 0)
    std::cout << nlohmann::json(
                     {{"bytes", bytes},
                      {"ours", figure(times)},
                      {"mpi", figure(timesOfMpi)},
                      {"ratio", arguments.best
                                    ? figure(times) / figure(timesOfMpi)
                                    : median(ratios)},
                      {"compute", figure(computing)},
                      {"together", figure(both)}})
                     .dump()
              << std::endl;
  return absl::OkStatus();
}

int main(int argc, char **argv) {
  Arguments arguments;
  if (argc > 1)
    arguments.rounds = std::max(1LL, std::atoll(argv[1]));
  for (int i = 2; i < argc; ++i) {
    arguments.best |= std::string(argv[i]) == "best";
    arguments.sends |= std::string(argv[i]) == "messages";
  }
  auto transport = MpiTransport::open(MPI_LIBRARY, absl::Minutes(1));
  absl::Status status = transport.status();
  if (status.ok()) {
    auto collectives = createCollectivesBetweenProcesses(**transport);
    Computation computation;
    for (int64_t bytes = least; bytes <= most && status.ok(); bytes *= 4)
      status =
          measure(**transport, *collectives, computation, bytes, arguments);
  }
  if (status.ok())
    status = (*transport)->finalize();
  if (status.ok())
    return 0;
  std::cout << nlohmann::json({{"error", std::string(status.message())}}).dump()
            << std::endl;
  return 70;
}
