//===- Arguments.cpp - Command lines that LLVM's flags read ---------------===//

#include "shardc/Support/Arguments.h"

#include "shardc/Support/CaptureStream.h"
#include "shardc/Support/ExitCodes.h"
#include "shardc/Support/Help.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/WriteErrors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <unistd.h>

using namespace llvm;
using namespace shardc;

/// The flags that print help or the version, and end the tool.
static bool endsTool(StringRef flag) {
  return flag == "help" || flag == "h" || flag == "version";
}

/// The flag of `tool` with this name; null if it has none.
static const cl::Option *findFlag(StringRef name, const ToolDescription &tool) {
  const cl::Option *option =
      cl::getRegisteredOptions().lookup(name == "h" ? "help" : name);
  bool isOwn = option && is_contained(option->Categories, &tool.category);
  return isOwn || endsTool(name) ? option : nullptr;
}

/// "; did you mean" the nearest flag, of several that are as near one that is
/// no pass; else where to find all.
static std::string suggestFlag(StringRef name, const ToolDescription &tool) {
  std::vector<std::string> names, passes;
  for (const auto &entry : cl::getRegisteredOptions())
    if (const cl::Option *option = findFlag(entry.first(), tool))
      (option->hasArgStr() ? names : passes).push_back(entry.first().str());
  llvm::sort(names);
  llvm::sort(passes);
  names.insert(names.end(), passes.begin(), passes.end());
  std::string nearest = findNearest(name.str(), names);
  return nearest.empty()
             ? std::string("; ") + tool.name + " --help lists all flags"
             : (nearest.size() == 1 ? "; did you mean -"
                                    : "; did you mean --") +
                   nearest + "?";
}

/// The error of the value of a flag, or "".
static std::string checkFlagValue(const cl::Option &option,
                                  const std::string &flag, bool hasValue,
                                  StringRef value, bool mayBeEmpty) {
  switch (option.getValueExpectedFlag()) {
  case cl::ValueRequired:
    return hasValue && (mayBeEmpty || !value.empty())
               ? ""
               : flag + ": expected a value, found none";
  case cl::ValueDisallowed:
    return hasValue ? flag + " takes no value, found '" + value.str() + "'"
                    : "";
  default:
    // A boolean, or a list such as that of the passes.
    return !hasValue || option.getNumOccurrencesFlag() != cl::Optional ||
                   value == "0" || value == "1" || value == "false" ||
                   value == "true"
               ? ""
               : flag + ": '" + value.str() + "' is not true or false";
  }
}

/// The first error of the arguments, or "". `ending` becomes the first flag
/// that ends the tool.
static std::string checkArguments(int argc, const char *const *argv,
                                  const ToolDescription &tool,
                                  std::string &ending) {
  StringSet<> seen;
  int inputs = 0;
  bool areInputs = false; // After "--".
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (areInputs || argument == "-" || !argument.starts_with("-")) {
      if (++inputs > tool.mostInputs)
        return (tool.mostInputs ? "one input expected, also got '"
                                : "no input expected, found '") +
               argument.str() + "'";
      continue;
    }
    if (argument == "--") {
      areInputs = true;
      continue;
    }
    StringRef name = argument;
    if (!name.consume_front("--"))
      name.consume_front("-");
    auto [flagName, value] = name.split('=');
    bool hasValue = name.size() > flagName.size();
    std::string flag = argument.take_front(argument.find('=')).str();
    const cl::Option *option = findFlag(flagName, tool);
    if (!option)
      return "unknown flag " + flag + suggestFlag(flagName.ltrim('-'), tool);
    if (endsTool(flagName)) {
      if (hasValue)
        return flag + " takes no value, found '" + value.str() + "'";
      if (ending.empty())
        ending = flagName.str();
      continue;
    }
    if (!seen.insert(flagName).second &&
        option->getNumOccurrencesFlag() == cl::Optional)
      return flag + " is given twice";
    bool hasNext = i + 1 < argc && !StringRef(argv[i + 1]).starts_with("--");
    if (option->getValueExpectedFlag() == cl::ValueRequired && !hasValue &&
        hasNext) {
      value = argv[++i];
      hasValue = true;
    }
    std::string error = checkFlagValue(*option, flag, hasValue, value,
                                       is_contained(tool.mayBeEmpty, flagName));
    if (error.empty() && tool.checkValue)
      error = tool.checkValue(flagName, value);
    if (!error.empty())
      return error;
  }
  return "";
}

/// The help, which LLVM knows only how to print.
static std::string getHelp() {
  outs().flush();
  return layOutHelp(captureStream(STDOUT_FILENO, [] {
    cl::PrintHelpMessage(/*Hidden=*/false, /*Categorized=*/true);
    outs().flush();
  }));
}

/// Reads arguments that are checked.
static void parse(std::vector<const char *> arguments,
                  const ToolDescription &tool) {
  // LLVM would read flags from the file of an argument that begins with "@".
  std::vector<std::string> paths(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i][0] == '@') {
      paths[i] = std::string("./") + arguments[i];
      arguments[i] = paths[i].c_str();
    }
  cl::ParseCommandLineOptions(arguments.size(), arguments.data(),
                              tool.overview);
}

std::optional<int> shardc::readArguments(int argc, const char *const *argv,
                                         const ToolDescription &tool) {
  auto fail = [&](const std::string &message) {
    errs() << tool.name << ": error: " << makePrintable(message) << '\n';
    return static_cast<int>(ExitCode::Usage);
  };
  cl::HideUnrelatedOptions(tool.category);
  StringMap<cl::Option *> &flags = cl::getRegisteredOptions();
  flags["help"]->setDescription("Print the flags and stop");
  flags["version"]->setDescription("Print the version and stop");
  std::string ending;
  if (std::string error = checkArguments(argc, argv, tool, ending);
      !error.empty())
    return fail(error);
  if (ending.empty()) {
    parse({argv, argv + argc}, tool);
    return std::nullopt;
  }
  // The help names the tool, which LLVM takes from here.
  parse({argv[0]}, tool);
  if (ending == "version")
    outs() << "shardc " << tool.version << '\n';
  else
    outs() << getHelp();
  if (std::string error = finishOutput(outs(), "-"); !error.empty())
    return fail(error);
  return static_cast<int>(ExitCode::Ok);
}
