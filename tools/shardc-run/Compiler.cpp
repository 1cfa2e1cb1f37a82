//===- Compiler.cpp - The compiler as shardc-run loads it -----------------===//
//
// Becomes a library of its own, which LoadCompiler.cpp opens when there is
// something to compile.
//
//===----------------------------------------------------------------------===//

#include "CompileInput.h"

#include "shardc/Driver/Compile.h"

using namespace shardc;
using namespace shardc::run;

void shardcCompileInput(const CompileRequest &request,
                        CompileOutcome &outcome) {
  CompileOptions options;
  options.mesh = request.mesh;
  options.rules = request.rules;
  if (!request.target.empty())
    options.target = request.target;
  if (!request.machine.empty())
    options.machine = request.machine;
  options.dumpDir = request.dumpDir;
  options.batchSize = request.batchSize;
  options.microbatches = request.microbatches;
  if (request.bucketBytes >= 0)
    options.bucketBytes = request.bucketBytes;
  options.singleDevice = request.singleDevice;
  options.ignoreExpectations = request.ignoreExpectations;
  options.regather = request.regather;
  options.verifyPartition = request.verifyPartition;
  if (!request.partition.empty())
    options.partition = request.partition;
  if (!request.objective.empty())
    options.objective = request.objective;
  options.deviceMemory = request.deviceMemory;
  options.dtype = request.dtype;
  if (!request.matmulPrecision.empty())
    options.matmulPrecision = request.matmulPrecision;
  CompileResult result = compileFile(request.path, options);
  outcome = {static_cast<int>(result.code), std::move(result.plan),
             std::move(result.diagnostics)};
}
