//===- NamedOptions.h - Compile options by name -----------------*- C++ -*-===//
//
// Reads compile options from names and texts, for programs that have no command
// line, and writes those that were given as JSON. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DRIVER_NAMEDOPTIONS_H
#define SHARDC_DRIVER_NAMEDOPTIONS_H

#include "shardc/Pipelines/OptionTable.h"

#include "llvm/Support/JSON.h"

#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// Names of the option table, without dashes, and values as texts.
using NamedOptions = std::vector<std::pair<std::string, std::string>>;

/// Sets `options` and adds their rows to `given`. Returns the first error, an
/// unknown name or a value that is not accepted, or "". The values of several
/// options together are checked by `checkOptions`.
std::string setOptions(const NamedOptions &named, CompileOptions &options,
                       std::vector<const CompileOption *> &given);

/// The options given, by the names of their flags.
llvm::json::Object toJson(const std::vector<const CompileOption *> &given,
                          const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_DRIVER_NAMEDOPTIONS_H
