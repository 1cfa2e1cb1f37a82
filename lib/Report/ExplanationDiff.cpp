//===- ExplanationDiff.cpp - Differences between two plans ----------------===//

#include "shardc/Report/ExplanationDiff.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;
using namespace shardc;

namespace {

/// A tensor and the collectives that move it, without lines of the source, and
/// its number among those of the same text, in program order.
using Key = std::pair<std::string, int>;

struct Entry {
  Key key;
  DiffEntry entry;
  DiffSide side;
};

} // namespace

/// "result of linear" of "result of linear at mlp.mlir:12".
static std::string withoutPlace(StringRef name) {
  return name.split(" at ").first.str();
}

static std::string getCause(const MovedTensor &tensor) {
  std::string text;
  for (const std::string &line : getChainLines(tensor))
    if (line.front() != ' ')
      text += (text.empty() ? "" : "; ") + line;
  return text;
}

static std::vector<Entry> getEntries(const ExplainedProgram &program) {
  std::vector<Entry> entries;
  std::map<std::string, int> seen;
  for (const ExplainedCollective &collective : program.collectives)
    for (const MovedTensor &tensor : collective.tensors) {
      std::string text = withoutPlace(tensor.name) + '\n' + collective.kind +
                         '\n' + join(collective.axes, ",");
      entries.push_back(
          {{text, seen[text]++},
           {tensor.name, collective.kind, collective.axes, {}, {}},
           {tensor.wireBytes, getGuiltySource(tensor), getCause(tensor)}});
    }
  return entries;
}

static const ExplainedProgram *findProgram(const Explanation &explanation,
                                           StringRef name) {
  for (const ExplainedProgram &program : explanation.programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

static ProgramDiff compare(const ExplainedProgram &here,
                           const ExplainedProgram &other) {
  ProgramDiff diff{here.name, here.cost, other.cost, {}};
  std::vector<Entry> others = getEntries(other);
  std::map<Key, Entry *> byKey;
  for (Entry &entry : others)
    byKey[entry.key] = &entry;
  for (Entry &entry : getEntries(here)) {
    auto it = byKey.find(entry.key);
    entry.entry.here = entry.side;
    if (it != byKey.end()) {
      entry.entry.other = it->second->side;
      bool isEqual = it->second->side.wireBytes == entry.side.wireBytes;
      byKey.erase(it);
      if (isEqual)
        continue;
    }
    diff.entries.push_back(std::move(entry.entry));
  }
  for (Entry &entry : others)
    if (byKey.count(entry.key)) {
      entry.entry.other = entry.side;
      diff.entries.push_back(std::move(entry.entry));
    }
  return diff;
}

ExplanationDiff shardc::compare(const Explanation &here,
                                const Explanation &other) {
  ExplanationDiff diff{here.mesh, other.mesh, {}};
  ExplainedProgram none;
  for (const ExplainedProgram &program : here.programs) {
    const ExplainedProgram *match = findProgram(other, program.name);
    diff.programs.push_back(::compare(program, match ? *match : none));
  }
  return diff;
}

static void printSide(const DiffSide &side, raw_ostream &os) {
  StringRef line = StringRef(side.source).rsplit(':').first;
  os << "      " << (line.empty() ? "an unknown place" : line) << ":\n";
  SmallVector<StringRef> sentences;
  StringRef(side.cause).split(sentences, "; ");
  for (StringRef sentence : sentences)
    os << "        " << sentence << '\n';
}

static std::string getBytes(const std::optional<DiffSide> &side) {
  return side ? std::to_string(side->wireBytes) : "-";
}

void shardc::print(const ExplanationDiff &diff, StringRef otherName,
                   raw_ostream &os) {
  const char *separator = "";
  for (const ProgramDiff &program : diff.programs) {
    os << separator << "Communication of " << program.name
       << ", bytes per device and run\n";
    separator = "\n";
    os << formatv("  here   {0,14} on {1}\n", program.here.wireBytes, diff.here)
       << formatv("  other  {0,14} on {1}, {2}\n", program.other.wireBytes,
                  diff.other, otherName);
    if (program.entries.empty()) {
      os << "  every tensor moves alike\n";
      continue;
    }
    os << formatv("    {0,-14} {1,-10} {2,14} {3,14}  {4}\n", "collective",
                  "axes", "here", "other", "tensor");
    for (const DiffEntry &entry : program.entries) {
      os << "  "
         << (!entry.other  ? '+'
             : !entry.here ? '-'
                           : '~')
         << formatv(" {0,-14} {1,-10} {2,14} {3,14}  {4}\n", entry.kind,
                    join(entry.axes, ","), getBytes(entry.here),
                    getBytes(entry.other), entry.tensor);
      if (entry.here)
        printSide(*entry.here, os);
      if (entry.other)
        printSide(*entry.other, os);
    }
  }
}

static json::Value sideToJson(const std::optional<DiffSide> &side) {
  if (!side)
    return nullptr;
  return json::Object{{"wire_bytes", side->wireBytes},
                      {"source", side->source},
                      {"cause", side->cause}};
}

json::Value shardc::toJSON(const ExplanationDiff &diff) {
  json::Array programs;
  for (const ProgramDiff &program : diff.programs) {
    json::Array changes;
    for (const DiffEntry &entry : program.entries)
      changes.push_back(json::Object{{"tensor", entry.tensor},
                                     {"kind", entry.kind},
                                     {"axes", json::Array(entry.axes)},
                                     {"here", sideToJson(entry.here)},
                                     {"other", sideToJson(entry.other)}});
    programs.push_back(
        json::Object{{"name", program.name},
                     {"wire_bytes_here", program.here.wireBytes},
                     {"wire_bytes_other", program.other.wireBytes},
                     {"changes", std::move(changes)}});
  }
  return json::Object{{"mesh_here", diff.here},
                      {"mesh_other", diff.other},
                      {"programs", std::move(programs)}};
}
