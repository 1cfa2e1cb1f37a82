//===- ExplanationChain.cpp - The cause of one move in sentences ----------===//

#include "shardc/Report/Explanation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace shardc;

std::string shardc::getShortSource(StringRef source) {
  if (source.empty())
    return "an unknown place";
  StringRef withoutColumn = source.rsplit(':').first;
  size_t slash = withoutColumn.rfind('/');
  return withoutColumn.drop_front(slash == StringRef::npos ? 0 : slash + 1)
      .str();
}

static std::string getOpText(const ChainEnd &end) {
  return (end.part == "backward" ? "backward of " : "") + end.op + " at " +
         getShortSource(end.source);
}

static bool isArgument(const ChainEnd &end) {
  return is_contained({"parameter", "state", "input", "label", "argument"},
                      end.op);
}

static std::string getOriginText(const AxisOrigin &origin) {
  if (origin.source.empty())
    return "chosen by the search";
  std::string text = StringRef(origin.name).starts_with("constraint")
                         ? "set by the " + origin.name
                         : "annotated on " + origin.name + " at " +
                               getShortSource(origin.source);
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

static std::string getStageText(const ChainEnd &end) {
  return "on stage " + std::to_string(*end.stage);
}

static std::string getProducerText(const MovedTensor &tensor) {
  const ChainEnd &producer = tensor.producer;
  if (!isArgument(producer))
    return getOpText(producer) + " makes it " +
           (producer.stage ? getStageText(producer) : tensor.from);
  const std::string &name =
      producer.arguments.empty() ? tensor.name : producer.arguments.front();
  if (producer.stage)
    return producer.op + " " + name + " is at home " + getStageText(producer) +
           ", the first that uses it";
  return producer.op + " " + name + " is stored as " + tensor.from;
}

static std::string getConsumerText(const MovedTensor &tensor) {
  const ChainEnd &producer = tensor.producer, &consumer = tensor.consumer;
  if (consumer.op == "rest")
    return (consumer.arguments.empty() ? "the result"
                                       : consumer.arguments.front()) +
           " is stored as " + tensor.to;
  // One op of the user becomes several: a GEMM, then the bias.
  bool isSame = consumer.op == producer.op && consumer.part == producer.part &&
                consumer.source == producer.source;
  return (isSame ? "the rest of that " + consumer.op : getOpText(consumer)) +
         (consumer.stage ? " reads it " + getStageText(consumer)
                         : " reads it as " + tensor.to);
}

/// The stages between those of a send, if there are any.
static std::string getSkipText(const MovedTensor &tensor) {
  if (!tensor.producer.stage || !tensor.consumer.stage)
    return "";
  auto [first, last] =
      std::minmax(*tensor.producer.stage, *tensor.consumer.stage);
  if (last - first < 2)
    return "";
  std::string text = "it crosses directly, past stage";
  if (last - first == 2)
    return text + " " + std::to_string(first + 1);
  return text + "s " + std::to_string(first + 1) + " to " +
         std::to_string(last - 1);
}

/// The axes that shard the tensor and that no tensor of its consumer has.
static std::vector<std::string> getUnusedAxes(const MovedTensor &tensor) {
  std::vector<std::string> unused;
  if (tensor.consumer.part.empty() ||
      tensor.consumer.op == "sharding_constraint")
    return unused;
  StringRef dims = StringRef(tensor.from).split(" unreduced").first;
  for (const AxisOrigin &lost : tensor.producer.origins) {
    std::string quoted = '"' + lost.axis + '"';
    if (dims.contains(quoted) && !StringRef(tensor.to).contains(quoted) &&
        none_of(tensor.consumer.origins, [&](const AxisOrigin &origin) {
          return origin.axis == lost.axis;
        }))
      unused.push_back(lost.axis);
  }
  return unused;
}

std::vector<std::string> shardc::getChainLines(const MovedTensor &tensor) {
  std::vector<std::string> lines;
  auto addOrigins = [&](const ChainEnd &end) {
    for (const AxisOrigin &origin : end.origins)
      lines.push_back("  \"" + origin.axis + "\": " + getOriginText(origin));
  };
  lines.push_back(getProducerText(tensor));
  addOrigins(tensor.producer);
  lines.push_back(getConsumerText(tensor));
  addOrigins(tensor.consumer);
  if (std::string text = getSkipText(tensor); !text.empty())
    lines.push_back(std::move(text));
  for (const std::string &axis : getUnusedAxes(tensor))
    lines.push_back("  \"" + axis + "\": shards nothing there");
  return lines;
}

std::string shardc::getGuiltySource(const MovedTensor &tensor) {
  if (tensor.producer.stage)
    return tensor.producer.source;
  if (tensor.fixIt)
    return tensor.fixIt->edits.front().source;
  if (tensor.consumer.op == "sharding_constraint")
    return tensor.consumer.source;
  for (const ChainEnd *end : {&tensor.producer, &tensor.consumer})
    for (const AxisOrigin &origin : end->origins)
      if (!origin.source.empty())
        return origin.source;
  return tensor.consumer.source;
}
