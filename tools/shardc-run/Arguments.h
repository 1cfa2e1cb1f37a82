//===- Arguments.h - The command line of shardc-run -------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_ARGUMENTS_H
#define SHARDC_TOOLS_SHARDC_RUN_ARGUMENTS_H

#include "shardc/Pipelines/OptionTable.h"

#include "absl/time/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardc::run {

struct Arguments {
  std::string input;
  /// The content of an input that can be read once: standard input, a pipe.
  std::optional<std::string> piped;
  CompileOptions compile;
  std::vector<const CompileOption *> given; ///< Of the compile options.
  /// All flags that are given, as "--flag" or "--flag=value".
  std::vector<std::string> flags;
  std::string planCache;
  bool noPlanCache = false;
  std::string device = "cpu";
  int64_t numDevices = 0;
  int gpu = -1; ///< Negative: not given.
  int gpus = 0; ///< 0: as many as there are devices, or one.
  absl::Duration deadline = absl::Minutes(5);
  absl::Duration heartbeat = absl::Seconds(5);
  std::string tuneGemms;
  int threads = 0;
  std::string data;
  std::string evalData;
  int64_t evalEvery = 0; ///< Epochs; 0: only at the end.
  bool evaluateOnly = false;
  std::string predict; ///< The file of predictions; empty: none are made.
  int64_t steps = 0;
  int64_t epochs = 0;
  uint64_t seed = 0;
  bool isSeedGiven = false;
  bool noShuffle = false;
  std::string loadParams;
  std::string saveParams;
  std::string metrics;
  std::string trace;
  bool profile = false;
  /// The steps that are recorded, from 1, the last one included.
  int64_t traceFirst = 2;
  int64_t traceLast = 11;
  std::string checkpointDir;
  int64_t checkpointSteps = 0;  ///< Between checkpoints; 0: not by steps.
  double checkpointSeconds = 0; ///< 0: not by time.
  int64_t keep = 0;             ///< 0: all.
  /// "latest", "if-any" or the number of a step; empty: a new training.
  std::string resume;
  int64_t logEvery = 100;
  bool checkReference = false;
  double tolerance = 0;
  bool checkPlan = false;
  bool serialize = false;
  bool noAliasReplicas = false;
  bool orderedSums = false;
  std::string cpuTarget;
  bool dryRun = false;
  bool listDevices = false;
  std::string measureMachine; ///< The machine file; empty: none is measured.
  bool json = false;

  /// Whether the run is a training: neither an evaluation alone nor a
  /// prediction.
  bool isTraining() const { return !evaluateOnly && predict.empty(); }
  /// Whether the compile option `name` is given.
  bool isGiven(const std::string &name) const;
};

/// Reads the command line. Empty if the process should end with `exitCode`:
/// help or the version was printed (0), or a mistake (1).
std::optional<Arguments> parseArguments(int argc, char **argv, int &exitCode);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_ARGUMENTS_H
