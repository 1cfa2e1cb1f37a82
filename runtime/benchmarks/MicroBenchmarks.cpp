//===- MicroBenchmarks.cpp - Limits, collectives, overheads ---------------===//
//
//   shardc-bench-micro [--update-plan=PLAN.shardc]... [flags of Google
//   Benchmark]
//
//===----------------------------------------------------------------------===//

#include "MicroBenchmarks.h"

#include <cstring>
#include <string>
#include <vector>

using namespace shardc::rt::bench;

int main(int argc, char **argv) {
  constexpr char flag[] = "--update-plan=";
  std::vector<std::string> updatePlans;
  int kept = 1;
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], flag, sizeof(flag) - 1) == 0)
      updatePlans.emplace_back(argv[i] + sizeof(flag) - 1);
    else
      argv[kept++] = argv[i];
  argc = kept;
  registerLimits();
  registerAllReduces();
  registerOverhead();
  for (const std::string &plan : updatePlans)
    registerUpdate(plan);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
