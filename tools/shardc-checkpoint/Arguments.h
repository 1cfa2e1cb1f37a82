//===- Arguments.h - The command line of shardc-checkpoint ------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_CHECKPOINT_ARGUMENTS_H
#define SHARDC_TOOLS_SHARDC_CHECKPOINT_ARGUMENTS_H

#include <optional>
#include <string>
#include <vector>

namespace shardc::checkpoint {

enum class Verb { List, Show, Verify, Export, Diff };

struct Arguments {
  Verb verb = Verb::List;
  /// At least one, two for Diff.
  std::vector<std::string> folders;
  std::string output; ///< Of Export.
  bool json = false;
};

/// Reads the command line. Empty if the process should end with `exitCode`:
/// help or the version was printed (0), or a mistake (1).
std::optional<Arguments> parseArguments(int argc, char **argv, int &exitCode);

/// Prints an error; returns `exitCode`.
int report(int exitCode, const std::string &message);

} // namespace shardc::checkpoint

#endif // SHARDC_TOOLS_SHARDC_CHECKPOINT_ARGUMENTS_H
