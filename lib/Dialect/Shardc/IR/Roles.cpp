//===- Roles.cpp - Roles of a function's arguments ------------------------===//

#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

Attribute shardc::getRole(FunctionOpInterface function, unsigned index) {
  return function.getArgAttr(index, roleAttrName);
}

StringAttr shardc::getRoleName(Attribute role) {
  if (!role)
    return {};
  return llvm::TypeSwitch<Attribute, StringAttr>(role)
      .Case<ParameterAttr, StateAttr, CopyAttr, InputAttr, LabelAttr>(
          [](auto named) { return named.getName(); })
      .Default([](Attribute) { return StringAttr(); });
}

StringRef shardc::getRoleKind(Attribute role) {
  if (!role)
    return "argument";
  return llvm::TypeSwitch<Attribute, StringRef>(role)
      .Case([](ParameterAttr) { return "parameter"; })
      .Case([](StateAttr) { return "state"; })
      .Case([](CopyAttr) { return "copy"; })
      .Case([](InputAttr) { return "input"; })
      .Case([](LabelAttr) { return "label"; })
      .Default([](Attribute) { return "argument"; });
}

BlockArgument shardc::findArgument(FunctionOpInterface function,
                                   StringRef name) {
  for (BlockArgument argument : function.getArguments()) {
    StringAttr found = getRoleName(getRole(function, argument.getArgNumber()));
    if (found && found.getValue() == name)
      return argument;
  }
  return {};
}

BlockArgument shardc::findStep(FunctionOpInterface function) {
  BlockArgument argument = findArgument(function, kStepName);
  if (argument && isa<StateAttr>(getRole(function, argument.getArgNumber())))
    return argument;
  return {};
}
