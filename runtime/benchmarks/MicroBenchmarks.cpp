//===- MicroBenchmarks.cpp - Limits, collectives, overheads ---------------===//
//
//   shardc-bench-micro [--update-plan=PLAN.shardc] [flags of Google Benchmark]
//
//===----------------------------------------------------------------------===//

#include "MicroBenchmarks.h"

#include <cstring>

using namespace shardc::rt::bench;

int main(int argc, char **argv) {
  constexpr char flag[] = "--update-plan=";
  std::string updatePlan;
  int kept = 1;
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], flag, sizeof(flag) - 1) == 0)
      updatePlan = argv[i] + sizeof(flag) - 1;
    else
      argv[kept++] = argv[i];
  argc = kept;
  registerLimits();
  registerAllReduces();
  registerOverhead();
  if (!updatePlan.empty())
    registerUpdate(updatePlan);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
