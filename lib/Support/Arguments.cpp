//===- Arguments.cpp - Command lines that LLVM's flags read ---------------===//

#include "shardc/Support/Arguments.h"

#include "shardc/Support/ExitCodes.h"
#include "shardc/Support/Help.h"
#include "shardc/Support/Printable.h"
#include "shardc/Support/Suggest.h"
#include "shardc/Support/WriteErrors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;
using namespace shardc;

/// ", did you mean" a flag that the help shows, of several that are as near one
/// of `category`; else where to find all.
static std::string suggestFlag(StringRef name, const ToolDescription &tool) {
  std::vector<std::string> names, others;
  for (const auto &entry : cl::getRegisteredOptions())
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden) {
      bool isOwn = is_contained(entry.second->Categories, &tool.category);
      (isOwn ? names : others).push_back(entry.first().str());
    }
  llvm::sort(names);
  llvm::sort(others);
  names.insert(names.end(), others.begin(), others.end());
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
                                  StringRef value) {
  switch (option.getValueExpectedFlag()) {
  case cl::ValueRequired:
    // An empty one is the flag's to judge: `--ptxas=` means none.
    return hasValue ? "" : flag + ": expected a value, found none";
  case cl::ValueDisallowed:
    return hasValue ? flag + " takes no value, found '" + value.str() + "'"
                    : "";
  default:
    return !hasValue || value == "0" || value == "1" || value == "false" ||
                   value == "true"
               ? ""
               : flag + ": '" + value.str() + "' is not true or false";
  }
}

/// Whether the flag prints a help, or the version, and ends the tool.
static bool endsTool(StringRef flag) {
  return flag == "version" || flag == "h" || flag.starts_with("help");
}

/// The first error of the arguments, or "". `ending` becomes the first flag
/// that ends the tool.
static std::string checkArguments(int argc, const char *const *argv,
                                  const ToolDescription &tool,
                                  std::string &ending) {
  const StringMap<cl::Option *> &options = cl::getRegisteredOptions();
  StringSet<> seen;
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--")
      return "";
    if (argument == "-" || !argument.starts_with("-")) {
      if (++inputs > tool.mostInputs)
        return (tool.mostInputs ? "one input expected, also got '"
                                : "no input expected, found '") +
               argument.str() + "'";
      continue;
    }
    StringRef name = argument.ltrim('-');
    auto [flagName, value] = name.split('=');
    bool hasValue = name.size() > flagName.size();
    std::string flag = argument.take_front(argument.find('=')).str();
    const cl::Option *option =
        options.lookup(flagName == "h" ? "help" : flagName);
    if (!option)
      return "unknown flag " + flag + suggestFlag(flagName, tool);
    bool isEnding = endsTool(flagName);
    if (isEnding && hasValue)
      return flag + " takes no value, found '" + value.str() + "'";
    if (isEnding && ending.empty())
      ending = flagName.str();
    if (isEnding || !is_contained(option->Categories, &tool.category))
      continue;
    if (!seen.insert(flagName).second &&
        option->getNumOccurrencesFlag() == cl::Optional)
      return flag + " is given twice";
    bool hasNext = i + 1 < argc && !StringRef(argv[i + 1]).starts_with("--");
    if (option->getValueExpectedFlag() == cl::ValueRequired && !hasValue &&
        hasNext) {
      value = argv[++i];
      hasValue = true;
    }
    if (std::string error = checkFlagValue(*option, flag, hasValue, value);
        !error.empty())
      return error;
  }
  return "";
}

/// The help that LLVM prints to standard output, the only place it knows; empty
/// if the system has no file for it.
static std::string getHelp(bool isHidden) {
  outs().flush();
  int file = memfd_create("help", MFD_CLOEXEC);
  int standard = dup(STDOUT_FILENO);
  std::string help;
  if (file >= 0 && standard >= 0 && dup2(file, STDOUT_FILENO) >= 0) {
    cl::PrintHelpMessage(isHidden, /*Categorized=*/true);
    outs().flush();
    dup2(standard, STDOUT_FILENO);
    char bytes[4096];
    lseek(file, 0, SEEK_SET);
    for (ssize_t size; (size = read(file, bytes, sizeof bytes)) > 0;)
      help.append(bytes, size);
  }
  close(file);
  close(standard);
  return help;
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
    outs() << layOutHelp(getHelp(StringRef(ending).ends_with("hidden")));
  if (std::string error = finishOutput(outs(), "-"); !error.empty())
    return fail(error);
  return static_cast<int>(ExitCode::Ok);
}
