//===- NamedOptions.cpp - Compile options by name -------------------------===//

#include "shardc/Driver/NamedOptions.h"

#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

using namespace shardc;

std::string shardc::setOptions(const NamedOptions &named,
                               CompileOptions &options,
                               std::vector<const CompileOption *> &given) {
  const std::vector<CompileOption> &table = getCompileOptions();
  for (const auto &[name, value] : named) {
    auto option = llvm::find_if(
        table, [&](const CompileOption &each) { return each.name == name; });
    if (option == table.end()) {
      std::vector<std::string> names;
      for (const CompileOption &each : table)
        names.push_back(each.name);
      return "unknown option '" + name + "'" + suggest(name, names);
    }
    if (std::string error = setOption(*option, value, options); !error.empty())
      return error;
    given.push_back(&*option);
  }
  return "";
}

llvm::json::Object
shardc::toJson(const std::vector<const CompileOption *> &given,
               const CompileOptions &options) {
  llvm::json::Object json;
  for (const CompileOption *option : given)
    json[option->name] =
        std::visit([](const auto &value) { return llvm::json::Value(value); },
                   getJsonValue(*option, options));
  return json;
}
