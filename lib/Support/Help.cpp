//===- Help.cpp - The layout of --help ------------------------------------===//

#include "shardc/Support/Help.h"

#include <algorithm>

using namespace shardc;

/// Where descriptions begin.
constexpr size_t column = 36;

/// Appends the words of `text` to `out`, which has a line of `used` columns;
/// further lines begin with `indent` spaces.
static void wrap(std::string_view text, size_t used, size_t indent,
                 std::string &out) {
  bool isFirst = true;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    std::string_view word = text.substr(begin, end - begin);
    begin = std::min(text.find_first_not_of(' ', end), text.size());
    if (!isFirst && used + 1 + word.size() > helpWidth) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      isFirst = true;
    }
    out += (isFirst ? "" : " ") + std::string(word);
    used += word.size() + !isFirst;
    isFirst = false;
  }
}

/// Appends a line of the help without its end.
static void addLine(std::string_view line, std::string &out) {
  size_t indent = line.find_first_not_of(' ');
  if (indent == line.npos)
    return;
  // A description whose flag fills the line before.
  constexpr size_t leastOfCli11 = 24;
  if (indent >= leastOfCli11) {
    out += std::string(column, ' ');
    return wrap(line.substr(indent), column, column, out);
  }
  // LLVM divides a flag from its description by " - ", CLI11 by spaces.
  size_t end = std::min(line.find("  ", indent), line.find(" - ", indent));
  if (indent == 0 || end == line.npos) {
    out += std::string(indent, ' ');
    return wrap(line.substr(indent), indent, indent + 2, out);
  }
  size_t words = line.find_first_not_of(' ', end);
  if (words != line.npos && line.substr(words, 2) == "- ")
    words = line.find_first_not_of(' ', words + 1);
  out += line.substr(0, end);
  if (words == line.npos)
    return;
  out += end + 2 > column ? "\n" + std::string(column, ' ')
                          : std::string(column - end, ' ');
  wrap(line.substr(words), column, column, out);
}

std::string shardc::layOutHelp(std::string_view help) {
  std::string out;
  while (!help.empty()) {
    size_t end = std::min(help.find('\n'), help.size());
    addLine(help.substr(0, end), out);
    out += '\n';
    help.remove_prefix(std::min(end + 1, help.size()));
  }
  return out;
}
