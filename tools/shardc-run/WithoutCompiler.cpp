//===- WithoutCompiler.cpp - Plans alone
//-----------------------------------===//

#include "CompileInput.h"

using namespace shardc::run;

CompileOutcome shardc::run::compileInput(const CompileRequest &request) {
  return {9, "",
          request.path +
              ": this shardc-run was built without the compiler and runs plans "
              "(.shardc) alone; write one with shardc-compile\n"};
}

bool shardc::run::hasCompiler() { return false; }
