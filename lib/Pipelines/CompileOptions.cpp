//===- CompileOptions.cpp - What a user may choose ------------------------===//

#include "shardc/Pipelines/CompileOptions.h"

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Support/MeshSpec.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/TargetSpec.h"

#include "llvm/Support/FormatVariadic.h"

using namespace shardc;

std::string shardc::checkOptions(const CompileOptions &options) {
  std::string error;
  if (!options.mesh.empty() && !parseMeshSpec(options.mesh, error))
    return "--mesh: " + error;
  if (!parseTargetSpec(options.target, error))
    return "--target: " + error;
  if (!options.dtype.empty() && options.dtype != "f32" &&
      options.dtype != "bf16")
    return "--dtype: unknown type '" + options.dtype + "'" +
           suggest(options.dtype, {"f32", "bf16"});
  const std::string &precision = options.matmulPrecision;
  if (precision != "highest" && precision != "tf32" && precision != "bf16")
    return "--matmul-precision: unknown precision '" + precision + "'" +
           suggest(precision, {"highest", "tf32", "bf16"});
  if (options.partition != "follow" && options.partition != "cheapest")
    return "--partition: unknown mode '" + options.partition + "'" +
           suggest(options.partition, {"follow", "cheapest"});
  if (options.objective != "time" && options.objective != "bytes")
    return "--objective: unknown objective '" + options.objective + "'" +
           suggest(options.objective, {"time", "bytes"});
  if (!(options.gap >= 0 && options.gap < 1))
    return "--gap: expected a number of at least 0 and less than 1, found " +
           llvm::formatv("{0}", double(options.gap)).str();
  if (llvm::Expected<Machine> machine = loadMachine(options.machine); !machine)
    return "--machine: " + llvm::toString(machine.takeError());
  if (options.batchSize < 0)
    return "--batch-size: expected 0 or more, found " +
           std::to_string(options.batchSize);
  if (options.microbatches < 0)
    return "--microbatches: expected 1 or more, found " +
           std::to_string(options.microbatches);
  if (options.deviceMemory < 0)
    return "--device-memory: expected 0 (no limit) or more, found " +
           std::to_string(options.deviceMemory);
  if (options.bucketBytes < 0)
    return "--bucket-bytes: expected 0 (no limit) or more, found " +
           std::to_string(options.bucketBytes);
  return "";
}
