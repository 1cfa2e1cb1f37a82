//===- Compiler.cpp - The compiler as shardc-run loads it -----------------===//
//
// A library of its own, which LoadCompiler.cpp opens on demand.
//
//===----------------------------------------------------------------------===//

#include "CompileInput.h"

#include "shardc/Driver/Compile.h"

using namespace shardc;
using namespace shardc::run;

void shardcCompileInput(const CompileRequest &request,
                        CompileOutcome &outcome) {
  CompileResult result = compileFile(request.path, request.options);
  outcome = {static_cast<int>(result.code), std::move(result.plan),
             std::move(result.diagnostics)};
}
