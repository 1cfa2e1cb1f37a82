//===- OptionTable.h - The compile options, one row each --------*- C++ -*-===//
//
// The one definition of each compile option: name, type, help, default and the
// values that it accepts. The flags of all tools, the cache key of plans, the
// JSON summaries and the table in docs/CommandLine.md are made from it. In
// terms of the standard library alone, so that shardc-run has it without the
// compiler. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_OPTIONTABLE_H
#define SHARDC_PIPELINES_OPTIONTABLE_H

#include "shardc/Pipelines/CompileOptions.h"

#include <string>
#include <variant>
#include <vector>

namespace shardc {

/// The value of an option; its type is the option's.
using OptionValue = std::variant<bool, int64_t, double, std::string>;

/// One compile option.
struct CompileOption {
  /// Which values an option accepts. Meshes, targets, machines, optimizers
  /// and schedules are read by `checkOptions` alone, which knows them. A rate
  /// is a finite number above 0, a norm may be infinite.
  enum class Accepts {
    Any,
    OneOf,
    NotNegative,
    Positive,
    Fraction,
    Rate,
    Norm,
    Mesh,
    Target,
    Machine,
    Optimizer,
    Schedule
  };

  /// The flag, without dashes. Also names the option in the cache key and in
  /// JSON, so it is unique.
  const char *name;
  std::variant<bool CompileOptions::*, int64_t CompileOptions::*,
               double CompileOptions::*, std::string CompileOptions::*>
      member;
  /// What the help shows for the value: a unit or an example; for `OneOf` the
  /// choices, with bars between them. Empty for a flag without a value.
  const char *value;
  Accepts accepts;
  /// The last phase that takes it: on IR after that phase it changes nothing.
  const char *lastPhase;
  /// The default in words, where its value (0, or no text) says nothing.
  const char *standard;
  const char *help;
};

/// All compile options, in the order of the help.
const std::vector<CompileOption> &getCompileOptions();

/// The choices of an option that accepts `OneOf`.
std::vector<std::string> getChoices(const CompileOption &option);

/// The value that `options` has for `option`.
OptionValue getValue(const CompileOption &option,
                     const CompileOptions &options);

/// The same for JSON, which has no infinity: that is a text.
OptionValue getJsonValue(const CompileOption &option,
                         const CompileOptions &options);

/// A value as a command line has it, which `setOption` reads: "64", "follow",
/// "1e-04"; flags are "0" or "1".
std::string toText(const OptionValue &value);

/// The default as a help shows it; empty for flags, and where there is none.
std::string describeDefault(const CompileOption &option);

/// Reads `text` into `options`: the whole of it, and only what the option
/// accepts. Returns what is wrong, beginning with "--NAME: ", or "".
std::string setOption(const CompileOption &option, const std::string &text,
                      CompileOptions &options);

/// What is wrong with a value that `options` has, beginning with "--NAME: ", or
/// "". A default is right, also where it stands for "not given" and is no value
/// that a user can give.
std::string checkValue(const CompileOption &option,
                       const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINES_OPTIONTABLE_H
