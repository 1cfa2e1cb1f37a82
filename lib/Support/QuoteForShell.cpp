//===- QuoteForShell.cpp - Arguments of commands to copy ------------------===//

#include "shardc/Support/QuoteForShell.h"

#include "shardc/Support/Printable.h"

#include <algorithm>
#include <cctype>

using namespace shardc;

/// Whether no shell sees anything special in `letter` behind the first one.
static bool isPlain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) ||
         std::string_view("_-+=./:,@%").find(letter) != std::string_view::npos;
}

std::string shardc::quoteForShell(std::string_view argument) {
  if (!argument.empty() &&
      std::all_of(argument.begin(), argument.end(), isPlain))
    return std::string(argument);
  bool isPrintable = argument.find_first_of("\n\t") == argument.npos &&
                     makePrintable(argument) == argument;
  std::string quoted = isPrintable ? "'" : "$'";
  for (char letter : argument)
    if (letter == '\'')
      quoted += isPrintable ? "'\\''" : "\\'";
    else if (letter == '\\' && !isPrintable)
      quoted += "\\\\";
    else if (letter == '\n')
      quoted += "\\n";
    else if (letter == '\t')
      quoted += "\\t";
    else
      quoted += letter;
  return (isPrintable ? quoted : makePrintable(quoted)) + "'";
}
