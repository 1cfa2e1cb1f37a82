//===- Arguments.h - Command lines that LLVM's flags read -------*- C++ -*-===//
//
// Reads a command line in the words of all tools. LLVM itself takes the last of
// two values, suggests flags that are not near, reads flags from files (@FILE),
// has hundreds of flags of its libraries, and writes help in lines of any
// length.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_ARGUMENTS_H
#define SHARDC_SUPPORT_ARGUMENTS_H

#include "llvm/Support/CommandLine.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// A tool, as its help and its errors describe it.
struct ToolDescription {
  const char *name;
  const char *version;
  /// A line that describes the tool.
  const char *overview;
  /// Most arguments that are no flags.
  int mostInputs;
  /// The tool's flags.
  llvm::cl::OptionCategory &category;
  /// The error in the value of a flag that is not a text or a boolean, or "".
  /// Called before LLVM reads the value; without "=" it is empty. May be null.
  std::function<std::string(llvm::StringRef flag, llvm::StringRef value)>
      checkValue = nullptr;
  /// The flags whose value may be empty, as in `--ptxas=`.
  std::vector<llvm::StringRef> mayBeEmpty = {};
};

/// Reads the command line into the flags of the tool's category; the flags of
/// LLVM's libraries are hidden and unknown. Returns the exit code if the tool
/// has to end: help or version were asked for and are printed, or an error is
/// printed. Errors are unknown flags, more arguments that are no flags than the
/// tool takes, flags that are given twice, lack a value or have one in vain,
/// and those of `checkValue`. Other values are for the tool to check.
std::optional<int> readArguments(int argc, const char *const *argv,
                                 const ToolDescription &tool);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARGUMENTS_H
