//===- Compile.cpp - From a source file to a plan -------------------------===//

#include "shardc/Pipelines/Compile.h"

#include "shardc/Pipelines/Phases.h"

#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace shardc;
