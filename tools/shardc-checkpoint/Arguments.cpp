//===- Arguments.cpp - The command line of shardc-checkpoint --------------===//

#include "Arguments.h"

#include "shardc/Support/Printable.h"
#include "shardc/Support/Suggest.h"

#include <iostream>
#include <iterator>
#include <set>

using namespace shardc::checkpoint;

static const char help[] =
    R"(Reads checkpoints, which shardc-run --checkpoint-dir=DIR writes.
Usage: shardc-checkpoint COMMAND DIR...

Commands:
  list DIR            The checkpoints in a folder, the latest last
  show DIR            The latest checkpoint, or DIR/step-N: tensors and shards
  verify DIR...       Computes all checksums of all checkpoints in these
                      folders, or of single ones
  export DIR -o FILE  Writes the parameters to a file .npz or .safetensors
  diff DIR DIR        Compares two checkpoints

Options:
  -o FILE             File that export writes
  --json              Print one JSON object (list, show and verify)
  --help              Print this help and stop
  --version           Print the version and stop
)";

namespace {
struct VerbName {
  const char *name;
  Verb verb;
};
} // namespace

static constexpr VerbName verbs[] = {{"list", Verb::List},
                                     {"show", Verb::Show},
                                     {"verify", Verb::Verify},
                                     {"export", Verb::Export},
                                     {"diff", Verb::Diff}};

int shardc::checkpoint::report(int exitCode, const std::string &message) {
  std::cerr << "shardc-checkpoint: " << makePrintable(message) << "\n";
  return exitCode;
}

/// Sets the command; returns an error, or "".
static std::string readCommand(const std::string &text, Arguments &arguments) {
  std::vector<std::string> names;
  for (const VerbName &each : verbs) {
    if (text == each.name) {
      arguments.verb = each.verb;
      return "";
    }
    names.push_back(each.name);
  }
  std::string nearest = shardc::findNearest(text, names);
  return "unknown command '" + text + "'" +
         (nearest.empty() ? "; expected list, show, verify, export or diff"
                          : "; did you mean " + nearest + "?");
}

/// The first contradiction; empty: none.
static std::string findContradiction(const Arguments &arguments) {
  size_t folders = arguments.folders.size();
  switch (arguments.verb) {
  case Verb::Diff:
    if (folders != 2)
      return "diff takes two checkpoints, got " + std::to_string(folders);
    break;
  case Verb::List:
  case Verb::Show:
  case Verb::Export:
    if (folders > 1)
      return "one folder expected, also got '" + arguments.folders[1] + "'";
    break;
  case Verb::Verify:
    break;
  }
  if (folders == 0)
    return "no folder given: expected one with checkpoints";
  bool isExport = arguments.verb == Verb::Export;
  if (isExport && arguments.output.empty())
    return "export needs -o FILE, a file .npz or .safetensors";
  if (!isExport && !arguments.output.empty())
    return "-o is for export";
  if (arguments.json && (isExport || arguments.verb == Verb::Diff))
    return "--json is for list, show and verify";
  return "";
}

std::optional<Arguments>
shardc::checkpoint::parseArguments(int argc, char **argv, int &exitCode) {
  Arguments arguments;
  bool hasCommand = false;
  std::set<std::string> seen;
  auto fail = [&](const std::string &message) {
    exitCode = report(1, message);
    return std::nullopt;
  };
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.empty() || argument[0] != '-') {
      if (hasCommand) {
        arguments.folders.push_back(argument);
        continue;
      }
      if (std::string error = readCommand(argument, arguments); !error.empty())
        return fail(error);
      hasCommand = true;
      continue;
    }
    size_t equals = argument.find('=');
    std::string flag = argument.substr(0, equals);
    bool hasValue = equals != argument.npos;
    if (flag != "-o" && flag != "--json" && flag != "--help" && flag != "-h" &&
        flag != "--version") {
      std::string nearest =
          shardc::findNearest(flag, {"-o", "--json", "--help", "--version"});
      return fail("unknown flag " + flag +
                  (nearest.empty()
                       ? "; shardc-checkpoint --help lists all flags"
                       : "; did you mean " + nearest + "?"));
    }
    if (!seen.insert(flag).second)
      return fail(flag + " is given twice");
    if (flag == "-o") {
      if (!hasValue && i + 1 < argc)
        arguments.output = argv[++i];
      else if (hasValue)
        arguments.output = argument.substr(equals + 1);
      if (arguments.output.empty())
        return fail("-o: expected a value, found none");
      continue;
    }
    if (hasValue)
      return fail(flag + " takes no value, found '" +
                  argument.substr(equals + 1) + "'");
    if (flag == "--json") {
      arguments.json = true;
      continue;
    }
    std::cout << (flag == "--version" ? "shardc " SHARDC_VERSION "\n" : help);
    return std::nullopt;
  }
  if (!hasCommand)
    return fail("no command given: expected list, show, verify, export or "
                "diff");
  if (std::string error = findContradiction(arguments); !error.empty())
    return fail(error);
  return arguments;
}
