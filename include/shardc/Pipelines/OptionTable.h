//===- OptionTable.h - The compile options, one row each --------*- C++ -*-===//
//
// The one definition of each compile option: name, type, help, default and
// accepted values. The flags of all tools, the cache key of plans, the JSON
// summaries and the table in docs/CommandLine.md are made from it. It uses the
// standard library alone, so that shardc-run has it without the compiler. Plain
// values; thread-safe.
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
  /// The values that an option accepts. Meshes, targets, machines, optimizers
  /// and schedules are checked by `checkOptions`, which can read them. A rate
  /// is a finite number above 0; a norm may be infinite.
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

  /// The flag, without dashes; also the name in the cache key and in JSON.
  /// Unique.
  const char *name;
  std::variant<bool CompileOptions::*, int64_t CompileOptions::*,
               double CompileOptions::*, std::string CompileOptions::*>
      member;
  /// The placeholder of the value in the help: a unit or an example; for
  /// `OneOf` the choices, with bars between them. Empty for a flag without a
  /// value.
  const char *value;
  Accepts accepts;
  /// The last phase that reads it: on IR after that phase it changes nothing.
  const char *lastPhase;
  /// The default in words, where its value (0, or no text) is not telling.
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

/// The same for JSON; infinity, which JSON lacks, is a text.
OptionValue getJsonValue(const CompileOption &option,
                         const CompileOptions &options);

/// A value as text that `setOption` reads: "64", "follow", "1e-04"; flags are
/// "0" or "1".
std::string toText(const OptionValue &value);

/// The default as a help shows it; empty for flags, and where there is none.
std::string describeDefault(const CompileOption &option);

/// Sets `option` of `options` from `text`, all of which must be a value that
/// the option accepts. Returns an error that begins with "--NAME: ", or "".
std::string setOption(const CompileOption &option, const std::string &text,
                      CompileOptions &options);

/// Checks the value of `option` in `options`. Returns an error that begins with
/// "--NAME: ", or "". The default is accepted even where it stands for "not
/// given" and could not be given by a user.
std::string checkValue(const CompileOption &option,
                       const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINES_OPTIONTABLE_H
