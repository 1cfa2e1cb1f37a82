//===- DebugOnly.cpp - The flag --debug-only ------------------------------===//

#include "shardc/Driver/DebugOnly.h"

#include "llvm/Support/Debug.h"

#include <string>
#include <vector>

using namespace llvm;

#if !defined(NDEBUG) && !SHARDC_LLVM_HAS_ASSERTIONS

/// Prints the lines of `type` besides those of the types selected before.
static void selectDebugType(const std::string &type) {
  static std::vector<std::string> selected;
  selected.push_back(type);
  std::vector<const char *> types;
  for (const std::string &each : selected)
    types.push_back(each.c_str());
  DebugFlag = true;
  setCurrentDebugTypes(types.data(), types.size());
}

void shardc::registerDebugOnlyFlag(cl::OptionCategory &category) {
  static cl::list<std::string> types(
      "debug-only", cl::CommaSeparated, cl::cat(category),
      cl::value_desc("shardc-fuse-kernels,..."),
      cl::desc("Print the decisions of these passes to standard error (debug "
               "builds only)"),
      cl::callback([](const std::string &type) { selectDebugType(type); }));
}

#else

void shardc::registerDebugOnlyFlag(cl::OptionCategory &category) {
  if (cl::Option *flag = cl::getRegisteredOptions().lookup("debug-only"))
    flag->addCategory(category);
}

#endif
