//===- draw-schedules.cpp - The pictures of docs/Pipelines.md -------------===//
//
// draw-schedules NAME RANKS CHUNKS MICROBATCHES [FILE]: prints a picture of the
// schedule NAME, or of the one in FILE, as reports draw it, and its figures.
// F, I and W take equal times, a chunk its part of them, transfers none.
// scripts/update-docs.sh compiles and runs it.
//
//===----------------------------------------------------------------------===//

#include "shardc/PipelineSchedules/DrawSchedule.h"
#include "shardc/PipelineSchedules/ScheduleText.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace shardc;

int main(int argc, char **argv) {
  if (argc < 5)
    return 1;
  std::string text = argv[1];
  if (argc > 5) {
    std::stringstream content;
    content << std::ifstream(argv[5]).rdbuf();
    text = content.str();
  }
  int chunks = std::atoi(argv[3]);
  llvm::Expected<PipelineSchedule> schedule = getPipelineSchedule(
      text, argv[1], std::atoi(argv[2]), chunks, std::atoi(argv[4]));
  if (!schedule) {
    std::cerr << llvm::toString(schedule.takeError()) << '\n';
    return 1;
  }
  double part = 1.0 / chunks;
  std::vector<StageTimes> times(schedule->getNumStages(), {part, part, part});
  PipelineSimulation simulation = simulateSchedule(*schedule, times);
  std::cout << "```\n" << drawSchedule(*schedule, simulation);
  std::printf("makespan %g F, bubble %.1f %%, live microbatches",
              simulation.makespan, 100 * simulation.getBubble());
  const char *separator = " ";
  for (double live : countLiveMicrobatches(*schedule)) {
    std::printf("%s%g", separator, live);
    separator = ", ";
  }
  std::puts("\n```");
}
