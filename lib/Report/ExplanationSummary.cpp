//===- ExplanationSummary.cpp - A table of lines to look at first ---------===//

#include "ExplanationSummary.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;
using namespace shardc;

/// With more collectives a program gets the table, which has at most
/// `maxLines`.
constexpr size_t maxCollectives = 12, maxLines = 8;

void shardc::printSummary(const ExplainedProgram &program, raw_ostream &os) {
  if (program.collectives.size() <= maxCollectives)
    return;
  struct Blame {
    std::string line;
    int64_t wireBytes = 0;
    std::map<std::string, int> kinds;
  };
  // In program order, which the stable sort below keeps among equal entries.
  MapVector<StringRef, Blame> byLine;
  size_t width = 0;
  for (const ExplainedCollective &collective : program.collectives) {
    Blame &blame = byLine[collective.guilty];
    blame.line = getShortSource(collective.guilty);
    blame.wireBytes += collective.wireBytes;
    ++blame.kinds[collective.kind];
    width = std::max(width, blame.line.size());
  }
  std::vector<Blame> blames;
  for (auto &entry : byLine)
    blames.push_back(std::move(entry.second));
  stable_sort(blames, [](const Blame &lhs, const Blame &rhs) {
    return lhs.wireBytes > rhs.wireBytes;
  });
  int64_t all = std::max<int64_t>(program.cost.wireBytes, 1);
  const char *label = "  to blame  ";
  for (const Blame &blame : ArrayRef(blames).take_front(maxLines)) {
    os << formatv("{0}{1}  {2,12} B {3,4}%", label,
                  left_justify(blame.line, width), blame.wireBytes,
                  (100 * blame.wireBytes + all / 2) / all);
    const char *separator = "  ";
    for (const auto &[kind, number] : blame.kinds) {
      os << separator << number << ' ' << kind;
      separator = ", ";
    }
    os << '\n';
    label = "            ";
  }
  if (blames.size() > maxLines)
    os << formatv("{0}and {1} more lines\n", label, blames.size() - maxLines);
}
