//===- ExplanationText.cpp - Explanations for people ----------------------===//
//
// Lines are kept within 100 characters where names and layouts allow it.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/Explanation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;

/// Tensors of one collective, and changes of one remedy, that are listed before
/// the rest is counted.
constexpr size_t maxTensors = 8;

constexpr size_t maxColumns = 100;

/// "file.mlir:12" of "path/file.mlir:12:3", for the inside of sentences.
static std::string getShort(StringRef source) {
  if (source.empty())
    return "an unknown place";
  StringRef withoutColumn = source.rsplit(':').first;
  size_t slash = withoutColumn.rfind('/');
  return withoutColumn.drop_front(slash == StringRef::npos ? 0 : slash + 1)
      .str();
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

static std::string getOpText(const ChainEnd &end) {
  return (end.part == "backward" ? "backward of " : "") + end.op + " at " +
         getShort(end.source);
}

static bool isArgument(const ChainEnd &end) {
  return is_contained({"parameter", "state", "input", "label", "argument"},
                      end.op);
}

static std::string getOriginText(const AxisOrigin &origin) {
  if (origin.source.empty())
    return "chosen by the search";
  std::string text =
      StringRef(origin.name).starts_with("constraint")
          ? "set by the " + origin.name
          : "annotated on " + origin.name + " at " + getShort(origin.source);
  if (origin.through.empty())
    return text;
  return text + ", through " +
         join(map_range(origin.through,
                        [](const SourceOp &op) {
                          return op.op + ":" +
                                 StringRef(op.source)
                                     .rsplit(':')
                                     .first.rsplit(':')
                                     .second.str();
                        }),
              ", ");
}

std::vector<std::string> shardc::getChainLines(const MovedTensor &tensor) {
  std::vector<std::string> lines;
  auto addOrigins = [&](const ChainEnd &end) {
    for (const AxisOrigin &origin : end.origins)
      lines.push_back("  \"" + origin.axis + "\": " + getOriginText(origin));
  };
  const ChainEnd &producer = tensor.producer, &consumer = tensor.consumer;
  lines.push_back((isArgument(producer)
                       ? producer.op + " " + tensor.name + " rests as "
                       : getOpText(producer) + " makes it ") +
                  tensor.from);
  addOrigins(producer);
  lines.push_back((consumer.op == "rest" ? (consumer.arguments.empty()
                                                ? "the result"
                                                : consumer.arguments.front()) +
                                               " rests as "
                                         : getOpText(consumer) + " wants it ") +
                  tensor.to);
  addOrigins(consumer);
  return lines;
}

std::string shardc::getGuiltySource(const MovedTensor &tensor) {
  if (tensor.remedy)
    return tensor.remedy->edits.front().source;
  if (tensor.consumer.op == "sharding_constraint")
    return tensor.consumer.source;
  for (const ChainEnd *end : {&tensor.producer, &tensor.consumer})
    for (const AxisOrigin &origin : end->origins)
      if (!origin.source.empty())
        return origin.source;
  return tensor.consumer.source;
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

static void printRemedy(const Remedy &remedy, const ProgramCost &now,
                        raw_ostream &os) {
  ArrayRef<AnnotationEdit> edits(remedy.edits);
  for (const AnnotationEdit &edit : edits.take_front(maxTensors))
    os << "            " << getShort(edit.source) << ", " << edit.name << ": "
       << edit.text << '\n';
  if (edits.size() > maxTensors)
    os << "            and " << edits.size() - maxTensors
       << " more; --json lists them\n";
  os << "            then " << remedy.cost.wireBytes << " bytes on the wire ("
     << getDifference(remedy.cost.wireBytes, now.wireBytes) << "), "
     << getDifference(remedy.cost.stateBytes, now.stateBytes)
     << " bytes at rest,\n            "
     << formatv("{0:f1} us ({1}{2:f1}), ", remedy.cost.seconds * 1e6,
                remedy.cost.seconds >= now.seconds ? "+" : "",
                (remedy.cost.seconds - now.seconds) * 1e6);
  if (remedy.cost.matmulFlops == now.matmulFlops)
    os << "the same FLOPs\n";
  else
    os << formatv(
        "{0:f2} times the FLOPs\n",
        static_cast<double>(remedy.cost.matmulFlops) /
            static_cast<double>(std::max<int64_t>(now.matmulFlops, 1)));
}

static void printTensors(const ExplainedCollective &collective,
                         raw_ostream &os) {
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
    label = "            ";
    std::string layouts = tensor.from + " -> " + tensor.to;
    bool fits = line.size() + 2 + layouts.size() <= maxColumns;
    os << line << (fits ? "  " : std::string("\n") + label + "  ") << layouts
       << '\n';
  }
  if (tensors.size() > maxTensors)
    os << "            and " << tensors.size() - maxTensors << " more\n";
}

static void printCollective(const ExplainedCollective &collective,
                            const ProgramCost &cost, raw_ostream &os) {
  os << getLine(collective.guilty) << ": " << collective.kind << " over "
     << getAxesText(collective.axes) << " in " << collective.part << ", "
     << collective.wireBytes << " bytes";
  if (cost.wireBytes > 0)
    os << formatv(" ({0}%)", (100 * collective.wireBytes + cost.wireBytes / 2) /
                                 cost.wireBytes);
  os << formatv(", {0:f1} us", collective.seconds * 1e6);
  os << '\n';
  if (collective.tensors.empty()) {
    os << "  because   " << collective.cause << '\n';
    return;
  }
  printTensors(collective, os);
  const char *label = "  because   ";
  for (const std::string &line : getChainLines(collective.tensors.front())) {
    os << label << line << '\n';
    label = "            ";
  }
  if (collective.isGatheredAgain)
    os << label << "the forward pass gathers it too: without --regather it is "
       << "held until here\n";
  if (collective.remedy) {
    os << "  remove by\n";
    printRemedy(*collective.remedy, cost, os);
    return;
  }
  if (collective.numTried > 0)
    os << "  remove by  none of " << collective.numTried
       << " changes of annotations removes the whole of it\n";
  if (collective.tensors.size() > 1)
    for (const MovedTensor &tensor :
         ArrayRef(collective.tensors).take_front(maxTensors))
      if (tensor.remedy) {
        os << "    without " << tensor.name << " by\n";
        printRemedy(*tensor.remedy, cost, os);
      }
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
       << formatv(", {0:f1} us on {1}\n", program.cost.seconds * 1e6,
                  explanation.machine);
    if (program.collectives.empty())
      os << "\nIt does not.\n";
    for (const ExplainedCollective &collective : program.collectives) {
      os << '\n';
      const ExplainedProgram &first = explanation.programs.front();
      if (&program != &first && repeats(collective, first))
        os << getLine(collective.guilty) << ": " << collective.kind << " over "
           << getAxesText(collective.axes) << ", " << collective.wireBytes
           << " bytes, as in " << first.name << '\n';
      else
        printCollective(collective, program.cost, os);
    }
    separator = "\n";
  }
}
