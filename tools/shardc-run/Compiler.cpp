//===- Compiler.cpp - The compiler as shardc-run loads it -----------------===//
//
// A library of its own, which LoadCompiler.cpp opens on demand.
//
//===----------------------------------------------------------------------===//

#include "CompileInput.h"

#include "shardc/Driver/Compile.h"

using namespace shardc;
using namespace shardc::run;

static CompileResult compileText(const CompileRequest &request) {
  std::string error =
      checkOutputs({{"the model", request.path}}, {}, request.options);
  if (!error.empty())
    return {ExitCode::Usage, "", "error: " + error + "\n"};
  return compileSource(*request.source,
                       request.path == "-" ? "<stdin>" : request.path,
                       request.options);
}

void shardcCompileInput(const CompileRequest &request,
                        CompileOutcome &outcome) {
  CompileResult result = request.source
                             ? compileText(request)
                             : compileFile(request.path, request.options);
  outcome = {static_cast<int>(result.code), std::move(result.plan),
             std::move(result.diagnostics)};
}
