//===- Arguments.h - Command lines that LLVM's flags read -------*- C++ -*-===//
//
// Reads a command line in the words of all tools. LLVM itself takes the last of
// two values, suggests flags that are not near, reads flags from files (@FILE),
// and writes help in lines of any length.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_ARGUMENTS_H
#define SHARDC_SUPPORT_ARGUMENTS_H

#include "llvm/Support/CommandLine.h"

#include <optional>
#include <string>

namespace shardc {

/// A tool, as its help and its errors describe it.
struct ToolDescription {
  const char *name;
  const char *version;
  /// A line that describes the tool.
  const char *overview;
  /// Most arguments that are no flags.
  int mostInputs;
  /// The tool's own flags.
  const llvm::cl::OptionCategory &category;
};

/// Reads the command line into the flags that are registered. Returns the exit
/// code if the tool has to end: help or version were asked for and are printed,
/// or an error is printed. Errors are flags that are not registered, more
/// arguments that are no flags than the tool takes, and flags of its category
/// that are given twice, lack a value or have one in vain. The other values are
/// for the tool to check.
std::optional<int> readArguments(int argc, const char *const *argv,
                                 const ToolDescription &tool);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARGUMENTS_H
