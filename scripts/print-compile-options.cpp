//===- print-compile-options.cpp - The table of compile options -----------===//
//
// Prints the rows of the table of compile options in docs/CommandLine.md.
// scripts/update-docs.sh compiles and runs it: the table of options needs the
// standard library alone.
//
//===----------------------------------------------------------------------===//

#include "shardc/Pipelines/OptionTable.h"

#include <iostream>

using namespace shardc;

/// Bars separate the cells of a table.
static std::string escapeBars(const std::string &text) {
  std::string escaped;
  for (char letter : text)
    escaped += letter == '|' ? "\\|" : std::string(1, letter);
  return escaped;
}

int main() {
  std::cout << "| flag | default | meaning |\n|---|---|---|\n";
  for (const CompileOption &option : getCompileOptions()) {
    std::string value = option.value;
    std::cout << "| `--" << option.name
              << (value.empty() ? "" : "=" + escapeBars(value)) << "` | "
              << describeDefault(option) << " | " << escapeBars(option.help)
              << " |\n";
  }
}
