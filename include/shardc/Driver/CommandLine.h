//===- CommandLine.h - Compile options as flags -----------------*- C++ -*-===//
//
// The flags of CompileOptions, the same in every tool of the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DRIVER_COMMANDLINE_H
#define SHARDC_DRIVER_COMMANDLINE_H

#include "shardc/Driver/Compile.h"
#include "shardc/Pipelines/OptionTable.h"

#include "llvm/Support/CommandLine.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace shardc {

/// The flags that set CompileOptions: one per row of the option table.
/// Construct one before the command line is parsed, and at most one per
/// process: LLVM's flags are global. Must outlive the printing of a help.
class CompileOptionsFlags {
public:
  /// Leaves out the options named in `others`, which the tool defines itself.
  explicit CompileOptionsFlags(llvm::cl::OptionCategory &category,
                               const std::set<std::string> &others = {});
  ~CompileOptionsFlags();

  /// The options that the user gave; values that `check` refuses keep the
  /// default.
  CompileOptions get() const;

  /// The first error in the values: a mesh that cannot be read, an unknown
  /// target, machine or partition, a negative number. Empty if there is none.
  std::string check() const;

  /// The options that the user gave, in the order of the table.
  std::vector<const CompileOption *> getGiven() const;

private:
  struct Flag;

  /// Reads the flags given into `options`; returns the first error, or "".
  std::string read(CompileOptions &options) const;

  /// In the order of the table.
  std::vector<std::unique_ptr<Flag>> flags;
};

} // namespace shardc

#endif // SHARDC_DRIVER_COMMANDLINE_H
