//===- Enums.cpp - The enumerations of the dialect ------------------------===//

#include "shardc/Dialect/Shardc/IR/Enums.h"

#include "llvm/ADT/StringSwitch.h"

#include "shardc/Dialect/Shardc/IR/ShardcEnums.cpp.inc"
