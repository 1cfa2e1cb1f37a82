//===- MeasureMachine.cpp - This computer as a machine file ---------------===//
//
// Of virtual devices see MeasureComputer.cpp, of several processes
// MeasureProcesses.cpp, of GPUs MeasureGpus.cpp.
//
//===----------------------------------------------------------------------===//

#include "MeasureMachine.h"

#include "MeasureComputer.h"
#include "MeasureGpus.h"
#include "MeasureProcesses.h"
#include "Outputs.h"
#include "Report.h"

#include "checkpoint/Files.h"
#include "shardc-rt/Context.h"

#include "absl/strings/str_format.h"

#include <iostream>

using namespace shardc::run;
using namespace shardc::rt;

/// A figure of the file in units of 1e9.
static double inGiga(const Json &figure) { return figure.get<double>() / 1e9; }

int shardc::run::measureMachine(const Arguments &arguments,
                                const Peers &peers) {
  const bool isFirst = !peers.store() || peers.store()->ranks().rank == 0;
  if (int code = isFirst ? checkOutputs(arguments) : 0)
    return code;
  absl::StatusOr<Json> json = absl::InternalError("nothing is measured");
  if (arguments.device == "cuda") {
    json = measureGpus(arguments, peers.ofGpus.get());
  } else {
    Devices devices(arguments, peers);
    if (int code = devices.find())
      return code;
    // All have met by now.
    if (peers.ofCpus && isFirst)
      std::cerr << "measuring " << peers.ofCpus->size() << " processes\n";
    json = peers.ofCpus
               ? measureProcesses(devices.workers().workers(), *peers.ofCpus)
               : measureComputer(devices.workers());
  }
  if (!json.ok())
    return report(json.status());
  if (!isFirst)
    return 0;
  const std::string text = json->dump(2) + "\n";
  if (absl::Status status =
          replaceFile(arguments.measureMachine,
                      [&](WritableFile &file) { return file.write(0, text); });
      !status.ok())
    return report(status);
  if (arguments.json) {
    std::cout << text;
    return 0;
  }
  const Json &device = (*json)["device"], &flops = device["flops_per_second"];
  std::cout << arguments.measureMachine << ": GEMMs";
  for (const char *type : {"f32", "tf32", "bf16"})
    if (flops.contains(type))
      std::cout << absl::StrFormat(" of %s %.3g GFLOP/s,", type,
                                   inGiga(flops[type]));
  // By distance, the largest last.
  const Json &memory = device["memory_bytes_per_second"];
  std::cout << absl::StrFormat(
      " memory %.3g GB/s", inGiga(memory.is_object() ? memory.back() : memory));
  if ((*json)["default_link"].is_object())
    std::cout << absl::StrFormat(
        ", collectives %.3g GB/s",
        inGiga((*json)["default_link"]["bytes_per_second"]));
  std::cout << "\n";
  return 0;
}
