//===- CheckNesting.cpp - Limits the nesting of brackets in a text --------===//

#include "shardc/Support/CheckNesting.h"

#include "llvm/ADT/Twine.h"

using namespace llvm;

std::string shardc::checkNesting(StringRef text, StringRef name) {
  std::optional<DeepNesting> found = findDeepNesting(text);
  if (!found)
    return "";
  return (name + ":" + Twine(found->line) + ":" + Twine(found->column) +
          ": error: " + found->message + "\n")
      .str();
}

std::optional<DeepNesting> shardc::findDeepNesting(StringRef text) {
  if (text.starts_with("ML\xefR"))
    return std::nullopt;
  int depth = 0;
  size_t line = 1, lineStart = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      lineStart = i + 1;
      break;
    case '"':
      // A string ends in its line; otherwise the parser reports it.
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      if (i < text.size() && text[i] == '\n')
        --i;
      break;
    case '/':
      if (text.substr(i).starts_with("//"))
        i = std::min(text.find('\n', i), text.size()) - 1;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > maxBrackets)
        return DeepNesting{
            static_cast<int64_t>(line), static_cast<int64_t>(i - lineStart + 1),
            ("more than " + Twine(maxBrackets) + " brackets are open here")
                .str()};
      break;
    case '>':
      // The `>` of an arrow closes nothing.
      if (i > 0 && text[i - 1] == '-')
        break;
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth = std::max(depth - 1, 0);
      break;
    default:
      break;
    }
  }
  return std::nullopt;
}
