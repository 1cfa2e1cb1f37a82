//===- CommandLine.cpp - Compile options as flags -------------------------===//

#include "shardc/Driver/CommandLine.h"

using namespace llvm;
using namespace shardc;

/// One option as a flag of LLVM's. LLVM sees all flags with a value as texts,
/// so that every tool reads and refuses values with the same messages.
struct CompileOptionsFlags::Flag {
  Flag(const CompileOption &option, cl::OptionCategory &category)
      : option(option), help(option.help) {
    if (std::string standard = describeDefault(option); !standard.empty())
      help += " (default: " + standard + ")";
    if (std::holds_alternative<bool CompileOptions::*>(option.member))
      isOn.emplace(StringRef(option.name), cl::cat(category), cl::desc(help));
    else
      text.emplace(StringRef(option.name), cl::cat(category),
                   cl::value_desc(option.value), cl::desc(help));
  }

  bool isGiven() const {
    return (isOn ? isOn->getNumOccurrences() : text->getNumOccurrences()) > 0;
  }

  std::string getText() const {
    return isOn ? toText(isOn->getValue()) : text->getValue();
  }

  const CompileOption &option;
  std::string help;
  /// Exactly one is set, by the type of the option.
  std::optional<cl::opt<bool>> isOn;
  std::optional<cl::opt<std::string>> text;
};

CompileOptionsFlags::CompileOptionsFlags(cl::OptionCategory &category,
                                         const std::set<std::string> &others) {
  for (const CompileOption &option : getCompileOptions())
    if (others.count(option.name) == 0)
      flags.push_back(std::make_unique<Flag>(option, category));
}

CompileOptionsFlags::~CompileOptionsFlags() = default;

std::string CompileOptionsFlags::read(CompileOptions &options) const {
  std::string first;
  for (const auto &flag : flags)
    if (flag->isGiven()) {
      std::string error = setOption(flag->option, flag->getText(), options);
      if (first.empty())
        first = error;
    }
  return first;
}

CompileOptions CompileOptionsFlags::get() const {
  CompileOptions options;
  read(options);
  return options;
}

std::string CompileOptionsFlags::check() const {
  CompileOptions options;
  std::string error = read(options);
  return error.empty() ? checkOptions(options) : error;
}

std::vector<const CompileOption *> CompileOptionsFlags::getGiven() const {
  std::vector<const CompileOption *> given;
  for (const auto &flag : flags)
    if (flag->isGiven())
      given.push_back(&flag->option);
  return given;
}
