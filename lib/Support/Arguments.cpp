//===- Arguments.cpp - Command lines that LLVM's flags read ---------------===//

#include "shardc/Support/Arguments.h"

#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace shardc;

/// ", did you mean" a flag that the help shows, of several that are as near one
/// of `category`; else where to find all.
static std::string suggestFlag(StringRef name, const std::string &tool,
                               const cl::OptionCategory &category) {
  std::vector<std::string> names, others;
  for (const auto &entry : cl::getRegisteredOptions())
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden) {
      bool isOwn = is_contained(entry.second->Categories, &category);
      (isOwn ? names : others).push_back(entry.first().str());
    }
  llvm::sort(names);
  llvm::sort(others);
  names.insert(names.end(), others.begin(), others.end());
  std::string nearest = findNearest(name.str(), names);
  return nearest.empty() ? "; " + tool + " --help lists all flags"
                         : "; did you mean --" + nearest + "?";
}

/// What is wrong with the value of a flag, or "".
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

std::string shardc::checkArguments(int argc, const char *const *argv,
                                   const std::string &tool, int mostInputs,
                                   const cl::OptionCategory &category) {
  const StringMap<cl::Option *> &options = cl::getRegisteredOptions();
  StringSet<> seen;
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--")
      return "";
    if (argument == "-" || !argument.starts_with("-")) {
      if (++inputs > mostInputs)
        return (mostInputs ? "one input expected, also got '"
                           : "no input expected, found '") +
               argument.str() + "'";
      continue;
    }
    StringRef name = argument.ltrim('-');
    auto [flagName, value] = name.split('=');
    bool hasValue = name.size() > flagName.size();
    std::string flag = argument.take_front(argument.find('=')).str();
    const cl::Option *option = options.lookup(flagName);
    if (!option)
      return "unknown flag " + flag + suggestFlag(flagName, tool, category);
    if (!is_contained(option->Categories, &category))
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
