//===- Arguments.h - Command lines that LLVM's flags read -------*- C++ -*-===//
//
// What is wrong with a command line, in the words of all tools, before LLVM
// reads it. LLVM itself takes the last of two values, and suggests flags that
// are not near.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_ARGUMENTS_H
#define SHARDC_SUPPORT_ARGUMENTS_H

#include "llvm/Support/CommandLine.h"

#include <string>

namespace shardc {

/// What is wrong with the arguments of `tool`, or "": a flag that is not
/// registered; more than `mostInputs` arguments that are no flags; a flag of
/// `category` that is given twice, lacks a value or has one in vain. Values of
/// other kinds than flags have are not looked at.
std::string checkArguments(int argc, const char *const *argv,
                           const std::string &tool, int mostInputs,
                           const llvm::cl::OptionCategory &category);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARGUMENTS_H
