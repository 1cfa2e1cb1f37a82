//===- AllReduceContest.cpp - All-reduces beside those of MPI -------------===//
//
// Processes with a device each add up arrays of f32, in turns by the runtime's
// collectives, in a fixed order, and by MPI_Allreduce, in any order:
//
//   mpirun -n 2 shardc-bench-allreduce [ROUNDS]
//
// Prints a line of JSON for each size: "bytes", the seconds of "ours" and of
// "mpi", medians over rounds of the slowest process, and the median "ratio" of
// the two in one round. "error" if sums differ from the expected ones.
//
//===----------------------------------------------------------------------===//

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
/// Of a turn.
static constexpr double turnSeconds = 0.02;

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

static absl::Status runAll(PreparedCollective &collective) {
  for (PreparedCollective *part : {collective.start(), &collective})
    for (PreparedCollective *round = part; round; round = round->next())
      for (int64_t task = 0; task < round->numTasks(); ++task)
        if (absl::Status status = round->runTask(task); !status.ok())
          return status;
  return absl::OkStatus();
}

static absl::Status measure(Transport &transport, Collectives &collectives,
                            int64_t bytes, int64_t rounds) {
  const int64_t elements = bytes / sizeof(float);
  const int own = transport.rank(), size = transport.size();
  std::vector<float> in(elements), out(elements), byMpi(elements);
  for (int64_t i = 0; i < elements; ++i)
    in[i] = own + i % 5;
  CollectiveTensor tensor{DType::F32, {elements}, {elements}, 0, -1, {}, {}};
  tensor.in.resize(size);
  tensor.out.resize(size);
  tensor.in[own] = in.data();
  tensor.out[own] = out.data();
  Mesh mesh({{"d", size}});
  auto prepared = collectives.prepare(
      mesh, {CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {tensor}});
  if (!prepared.ok())
    return prepared.status();
  absl::Status status;
  auto ours = [&] { status.Update(runAll(**prepared)); };
  auto mpi = [&] {
    MPI_Allreduce(in.data(), byMpi.data(), static_cast<int>(elements),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  };
  secondsOf(2, ours);
  secondsOf(2, mpi);
  int64_t count = std::clamp<int64_t>(turnSeconds / secondsOf(2, mpi), 1, 2000);
  std::vector<double> times, timesOfMpi, ratios;
  for (int64_t round = 0; round < rounds; ++round) {
    times.push_back(secondsOf(count, ours));
    timesOfMpi.push_back(secondsOf(count, mpi));
    ratios.push_back(times.back() / timesOfMpi.back());
  }
  if (status.ok() && out != byMpi)
    status = absl::InternalError("other sums than those of MPI");
  if (!status.ok())
    return status;
  if (own == 0)
    std::cout << nlohmann::json({{"bytes", bytes},
                                 {"ours", median(times)},
                                 {"mpi", median(timesOfMpi)},
                                 {"ratio", median(ratios)}})
                     .dump()
              << std::endl;
  return absl::OkStatus();
}

int main(int argc, char **argv) {
  int64_t rounds = argc > 1 ? std::atoll(argv[1]) : 15;
  auto transport = MpiTransport::open(MPI_LIBRARY, absl::Minutes(1));
  absl::Status status = transport.status();
  if (status.ok()) {
    auto collectives = createCollectivesBetweenProcesses(**transport);
    for (int64_t bytes = least; bytes <= most && status.ok(); bytes *= 4)
      status = measure(**transport, *collectives, bytes,
                       std::max<int64_t>(1, rounds));
  }
  if (status.ok())
    status = (*transport)->finalize();
  if (status.ok())
    return 0;
  std::cout << nlohmann::json({{"error", std::string(status.message())}}).dump()
            << std::endl;
  return 70;
}
