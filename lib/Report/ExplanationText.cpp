//===- ExplanationText.cpp - Explanations for people ----------------------===//
//
// Lines are kept within 100 characters where names and layouts allow it.
//
//===----------------------------------------------------------------------===//

#include "ExplanationSummary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;

/// The most tensors of one collective, and changes of one fix-it, that are
/// listed; of more the rest is counted.
constexpr size_t maxTensors = 8;

constexpr size_t maxColumns = 100;

/// The indent below the labels of a paragraph, which all have this length.
constexpr const char *indent = "            ";

using Lines = std::vector<std::string>;

/// The rounding of reports.
constexpr double leastSeconds = 0.05e-6;

bool shardc::isFaster(const ProgramCost &lhs, const ProgramCost &rhs) {
  return lhs.seconds < rhs.seconds - leastSeconds;
}

bool shardc::pays(const ProgramCost &before, const ProgramCost &after) {
  if (isFaster(after, before))
    return true;
  double bytes = before.wireBytes - after.wireBytes;
  double seconds = std::max(0.0, after.seconds - before.seconds);
  return bytes > 0 && bytes * before.seconds > seconds * before.wireBytes;
}

/// "path/file.mlir:12".
static StringRef getLine(StringRef source) {
  return source.empty() ? "an unknown place" : source.rsplit(':').first;
}

static std::string getAxesText(ArrayRef<std::string> axes) {
  return join(
      map_range(axes, [](const std::string &it) { return '"' + it + '"'; }),
      ", ");
}

static std::string getShapeText(const MovedTensor &tensor) {
  return tensor.dtype + "[" +
         join(map_range(tensor.shape,
                        [](int64_t size) { return std::to_string(size); }),
              ",") +
         "]";
}

static std::string getDifference(int64_t now, int64_t before) {
  return formatv("{0}{1}", now >= before ? "+" : "", now - before).str();
}

/// The cost of the program after a change, beside its present cost.
static void addCost(const ProgramCost &then, const ProgramCost &now,
                    Lines &lines) {
  lines.push_back(
      indent + formatv("then {0} bytes on the wire ({1}), {2} bytes of state,",
                       then.wireBytes,
                       getDifference(then.wireBytes, now.wireBytes),
                       getDifference(then.stateBytes, now.stateBytes))
                   .str());
  std::string line =
      formatv("{0}{1:f1} us ({2}{3:f1}), ", indent, then.seconds * 1e6,
              then.seconds >= now.seconds ? "+" : "",
              (then.seconds - now.seconds) * 1e6);
  if (then.matmulFlops == now.matmulFlops)
    line += "the same FLOPs";
  else
    line +=
        formatv("{0:f2} times the FLOPs",
                static_cast<double>(then.matmulFlops) /
                    static_cast<double>(std::max<int64_t>(now.matmulFlops, 1)));
  if (then.peakBytes && now.peakBytes && then.sumOfWireBytes &&
      now.sumOfWireBytes) {
    lines.push_back(line + ',');
    line = formatv("{0}{1} bytes of memory ({2}), {3} on the wires of all "
                   "ranks ({4})",
                   indent, *then.peakBytes,
                   getDifference(*then.peakBytes, *now.peakBytes),
                   *then.sumOfWireBytes,
                   getDifference(*then.sumOfWireBytes, *now.sumOfWireBytes));
  }
  if (then.mayBeLess)
    line += "; a longer search may find less";
  lines.push_back(std::move(line));
}

static void addFixIt(const FixIt &fixIt, const ProgramCost &now, Lines &lines) {
  ArrayRef<AnnotationEdit> edits(fixIt.edits);
  for (const AnnotationEdit &edit : edits.take_front(maxTensors))
    lines.push_back(indent + getShortSource(edit.source) + ", " + edit.name +
                    ": " + edit.text);
  if (edits.size() > maxTensors)
    lines.push_back(indent + formatv("and {0} more; --json lists them",
                                     edits.size() - maxTensors)
                                 .str());
  addCost(fixIt.cost, now, lines);
}

static void addTensors(const ExplainedCollective &collective, Lines &lines) {
  ArrayRef<MovedTensor> tensors(collective.tensors);
  size_t width = 0, shapeWidth = 0;
  for (const MovedTensor &tensor : tensors.take_front(maxTensors)) {
    width = std::max(width, tensor.name.size());
    shapeWidth = std::max(shapeWidth, getShapeText(tensor).size());
  }
  const char *label = "  moves     ";
  for (const MovedTensor &tensor : tensors.take_front(maxTensors)) {
    std::string line = formatv(
        "{0}{1}  {2}  {3,12} B", label, left_justify(tensor.name, width),
        left_justify(getShapeText(tensor), shapeWidth), tensor.wireBytes);
    label = indent;
    std::string layouts =
        collective.isSend() ? tensor.from : tensor.from + " -> " + tensor.to;
    if (line.size() + 2 + layouts.size() <= maxColumns) {
      lines.push_back(line + "  " + layouts);
      continue;
    }
    lines.push_back(line);
    lines.push_back(indent + ("  " + layouts));
  }
  if (tensors.size() > maxTensors)
    lines.push_back(indent +
                    formatv("and {0} more", tensors.size() - maxTensors).str());
}

/// The collectives of `program` that carry `tensor` from one end of its move to
/// the other, in order.
static Lines getSteps(const MovedTensor &tensor,
                      const ExplainedProgram &program) {
  Lines steps;
  for (const ExplainedCollective &collective : program.collectives)
    if (any_of(collective.tensors, [&](const MovedTensor &other) {
          return other.move == tensor.move;
        }))
      steps.push_back(collective.kind + " over " +
                      getAxesText(collective.axes));
  return steps;
}

static void addReasons(const ExplainedCollective &collective,
                       const ExplainedProgram &program, Lines &lines) {
  const char *label = "  because   ";
  const MovedTensor &largest = collective.tensors.front();
  for (const std::string &line : getChainLines(largest)) {
    lines.push_back(label + line);
    label = indent;
  }
  if (Lines steps = getSteps(largest, program); steps.size() > 1)
    lines.push_back(indent + formatv("in {0} steps: ", steps.size()).str() +
                    join(steps, ", "));
  if (collective.isGatheredAgain)
    lines.push_back(std::string(indent) +
                    "the forward pass gathers it too: without --regather it "
                    "is held until here");
}

static bool areEqual(const FixIt &lhs, const FixIt &rhs) {
  return lhs.edits.size() == rhs.edits.size() &&
         all_of(zip(lhs.edits, rhs.edits), [](const auto &pair) {
           const auto &[edit, other] = pair;
           return edit.source == other.source && edit.name == other.name &&
                  edit.text == other.text;
         });
}

/// The collective of `program` before `collective` that has the same fix-it.
static const ExplainedCollective *
findSameFixIt(const ExplainedCollective &collective,
              const ExplainedProgram &program) {
  for (const ExplainedCollective &other : program.collectives) {
    if (&other == &collective)
      return nullptr;
    if (other.fixIt && areEqual(*other.fixIt, *collective.fixIt))
      return &other;
  }
  return nullptr;
}

static void addFixIts(const ExplainedCollective &collective,
                      const ExplainedProgram &program, Lines &lines) {
  const ProgramCost &cost = program.cost;
  bool isSend = collective.isSend();
  std::string label = isSend ? "  send less by" : "  remove by";
  if (collective.fixIt) {
    // The sends across one boundary between stages have it in common.
    if (isSend)
      if (auto *other = findSameFixIt(collective, program)) {
        lines.push_back(label + "  the change above, for the send of " +
                        other->tensors.front().name);
        return;
      }
    lines.push_back(label);
    addFixIt(*collective.fixIt, cost, lines);
    return;
  }
  if (collective.costWithout) {
    // A change that pays here is no fix-it if the step pays for it.
    lines.push_back(
        label + "  no change that pays" +
        (pays(cost, *collective.costWithout) ? " in the step" : "") +
        "; with the fastest of those that " +
        (isSend ? "send less" : "remove it"));
    addCost(*collective.costWithout, cost, lines);
  } else if (collective.numTried > 0) {
    lines.push_back(
        formatv("{0}  no change of an annotation: {1} tried, {2}", label,
                collective.numTried,
                isSend ? "none sends less" : "none removes the whole of it")
            .str());
  } else if (any_of(program.collectives, [](const ExplainedCollective &it) {
               return it.numTried > 0;
             })) {
    lines.push_back(label + "  no change of an annotation was tried");
  }
  if (collective.tensors.size() > 1)
    for (const MovedTensor &tensor :
         ArrayRef(collective.tensors).take_front(maxTensors))
      if (tensor.fixIt) {
        lines.push_back("    without " + tensor.name + " by");
        addFixIt(*tensor.fixIt, cost, lines);
      }
}

std::vector<std::string>
shardc::getParagraphLines(const ExplainedCollective &collective,
                          const ExplainedProgram &program) {
  if (collective.tensors.empty())
    return {"  because   " + collective.cause};
  Lines lines;
  addTensors(collective, lines);
  addReasons(collective, program, lines);
  addFixIts(collective, program, lines);
  return lines;
}

/// " (5%) in 4 microbatches", of all that the program sends.
static std::string getShareText(const ExplainedCollective &collective,
                                const ExplainedProgram &program) {
  std::string text;
  if (int64_t all = program.cost.wireBytes; all > 0)
    text +=
        formatv(" ({0}%)", (100 * collective.wireBytes + all / 2) / all).str();
  if (collective.runs > 1)
    text += " in " + std::to_string(collective.runs) + " microbatches";
  return text;
}

std::string shardc::getNoteText(const ExplainedCollective &collective,
                                const ExplainedProgram &program) {
  std::string text = collective.kind + " over " + getAxesText(collective.axes) +
                     " in " + collective.part + " sends " +
                     std::to_string(collective.wireBytes) + " bytes" +
                     getShareText(collective, program);
  if (collective.seconds > 0)
    text += formatv(", {0:f1} us", collective.seconds * 1e6).str();
  if (collective.tensors.empty())
    return text + ": " + collective.cause;
  text += ": " + join(map_range(collective.tensors,
                                [](const MovedTensor &it) { return it.name; }),
                      ", ");
  for (const std::string &line : getParagraphLines(collective, program))
    text += '\n' + line;
  return text;
}

static void printCollective(const ExplainedCollective &collective,
                            const ExplainedProgram &program, raw_ostream &os) {
  os << getLine(collective.guilty) << ": " << collective.kind << " over "
     << getAxesText(collective.axes) << " in " << collective.part << ", "
     << collective.wireBytes << " bytes" << getShareText(collective, program);
  os << formatv(", {0:f1} us", collective.seconds * 1e6) << '\n';
  for (const std::string &line : getParagraphLines(collective, program))
    os << line << '\n';
}

/// Whether `program` has a collective of the kind and axes that moves the same
/// tensors.
static bool repeats(const ExplainedCollective &collective,
                    const ExplainedProgram &program) {
  return any_of(program.collectives, [&](const ExplainedCollective &other) {
    return other.kind == collective.kind && other.axes == collective.axes &&
           !collective.tensors.empty() &&
           all_of(collective.tensors, [&](const MovedTensor &tensor) {
             return any_of(other.tensors, [&](const MovedTensor &it) {
               return it.name == tensor.name && it.from == tensor.from &&
                      it.to == tensor.to;
             });
           });
  });
}

void shardc::print(const Explanation &explanation, raw_ostream &os) {
  const char *separator = "";
  for (const ExplainedProgram &program : explanation.programs) {
    os << separator << "Why " << program.name << " communicates, on "
       << explanation.mesh << ": " << program.cost.wireBytes
       << " bytes per device and run"
       << formatv(", {0:f1} us on {1}", program.cost.seconds * 1e6,
                  explanation.machine);
    if (program.cost.inputSeconds > 0)
      os << (program.cost.inputSeconds < program.cost.seconds
                 ? formatv(", inputs from the host {0:f1} us beside that",
                           program.cost.inputSeconds * 1e6)
                       .str()
                 : ", as long as its inputs come from the host");
    os << '\n';
    if (program.collectives.empty())
      os << "\nIt does not.\n";
    printSummary(program, os);
    for (const ExplainedCollective &collective : program.collectives) {
      os << '\n';
      const ExplainedProgram &first = explanation.programs.front();
      if (&program != &first && repeats(collective, first))
        os << getLine(collective.guilty) << ": " << collective.kind << " over "
           << getAxesText(collective.axes) << ", " << collective.wireBytes
           << " bytes, as in " << first.name << '\n';
      else
        printCollective(collective, program, os);
    }
    separator = "\n";
  }
}
