//===- ExplanationJson.cpp - Explanations as JSON -------------------------===//
//
// One pair of functions per struct of Explanation.h, in its order.
//
//===----------------------------------------------------------------------===//

#include "shardc/Report/Explanation.h"

using namespace llvm;

namespace shardc {

/// The array in its place from the start: one that grows copies all that it
/// holds, since moving a json::Value is not noexcept.
template <typename T>
static json::Array toArray(const std::vector<T> &items) {
  json::Array array;
  array.reserve(items.size());
  for (const T &item : items)
    array.push_back(json::Value(item));
  return array;
}

static bool mapMicroseconds(json::ObjectMapper &map, double &seconds) {
  if (!map.map("microseconds", seconds))
    return false;
  seconds /= 1e6;
  return true;
}

static json::Value toJSON(const SourceOp &op) {
  return json::Object{{"op", op.op}, {"source", op.source}};
}

static bool fromJSON(const json::Value &value, SourceOp &op, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("op", op.op) && map.map("source", op.source);
}

static json::Value toJSON(const AxisOrigin &origin) {
  return json::Object{{"axis", origin.axis},
                      {"name", origin.name},
                      {"source", origin.source},
                      {"through", toArray(origin.through)}};
}

static bool fromJSON(const json::Value &value, AxisOrigin &origin,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("axis", origin.axis) && map.map("name", origin.name) &&
         map.map("source", origin.source) && map.map("through", origin.through);
}

static json::Value toJSON(const ChainEnd &end) {
  return json::Object{{"op", end.op},
                      {"part", end.part},
                      {"source", end.source},
                      {"arguments", toArray(end.arguments)},
                      {"origins", toArray(end.origins)}};
}

static bool fromJSON(const json::Value &value, ChainEnd &end, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("op", end.op) && map.map("part", end.part) &&
         map.map("source", end.source) && map.map("arguments", end.arguments) &&
         map.map("origins", end.origins);
}

static json::Value toJSON(const ProgramCost &cost) {
  return json::Object{{"wire_bytes_per_device", cost.wireBytes},
                      {"matmul_flops_per_device", cost.matmulFlops},
                      {"state_bytes_per_device", cost.stateBytes},
                      {"microseconds", cost.seconds * 1e6},
                      {"may_be_less", cost.mayBeLess}};
}

static bool fromJSON(const json::Value &value, ProgramCost &cost,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("wire_bytes_per_device", cost.wireBytes) &&
         map.map("matmul_flops_per_device", cost.matmulFlops) &&
         map.map("state_bytes_per_device", cost.stateBytes) &&
         mapMicroseconds(map, cost.seconds) &&
         map.map("may_be_less", cost.mayBeLess);
}

static json::Value toJSON(const AnnotationEdit &edit) {
  return json::Object{
      {"source", edit.source}, {"name", edit.name}, {"text", edit.text}};
}

static bool fromJSON(const json::Value &value, AnnotationEdit &edit,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("source", edit.source) && map.map("name", edit.name) &&
         map.map("text", edit.text);
}

static json::Value toJSON(const std::optional<FixIt> &fixIt) {
  if (!fixIt)
    return nullptr;
  return json::Object{{"edits", toArray(fixIt->edits)},
                      {"cost", toJSON(fixIt->cost)}};
}

static bool fromJSON(const json::Value &value, FixIt &fixIt, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("edits", fixIt.edits) || !map.map("cost", fixIt.cost))
    return false;
  // Reports name the line of the first change.
  if (fixIt.edits.empty())
    path.field("edits").report("expected at least one change");
  return !fixIt.edits.empty();
}

static json::Value toJSON(const MovedTensor &tensor) {
  return json::Object{{"name", tensor.name},
                      {"move", tensor.move},
                      {"shape", toArray(tensor.shape)},
                      {"dtype", tensor.dtype},
                      {"from", tensor.from},
                      {"to", tensor.to},
                      {"wire_bytes", tensor.wireBytes},
                      {"producer", toJSON(tensor.producer)},
                      {"consumer", toJSON(tensor.consumer)},
                      {"remedy", toJSON(tensor.fixIt)}};
}

static bool fromJSON(const json::Value &value, MovedTensor &tensor,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", tensor.name) && map.map("move", tensor.move) &&
         map.map("shape", tensor.shape) && map.map("dtype", tensor.dtype) &&
         map.map("from", tensor.from) && map.map("to", tensor.to) &&
         map.map("wire_bytes", tensor.wireBytes) &&
         map.map("producer", tensor.producer) &&
         map.map("consumer", tensor.consumer) &&
         map.map("remedy", tensor.fixIt);
}

static json::Value toJSON(const ExplainedCollective &collective) {
  return json::Object{{"kind", collective.kind},
                      {"axes", toArray(collective.axes)},
                      {"group_size", collective.groupSize},
                      {"bytes", collective.bytes},
                      {"wire_bytes", collective.wireBytes},
                      {"runs", collective.runs},
                      {"microseconds", collective.seconds * 1e6},
                      {"part", collective.part},
                      {"cause", collective.cause},
                      {"gathered_again", collective.isGatheredAgain},
                      {"tensors", toArray(collective.tensors)},
                      {"guilty", collective.guilty},
                      {"remedy", toJSON(collective.fixIt)},
                      {"cost_without", collective.costWithout
                                           ? toJSON(*collective.costWithout)
                                           : json::Value(nullptr)},
                      {"changes_tried", collective.numTried}};
}

static bool fromJSON(const json::Value &value, ExplainedCollective &collective,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("kind", collective.kind) &&
         map.map("axes", collective.axes) &&
         map.map("group_size", collective.groupSize) &&
         map.map("bytes", collective.bytes) &&
         map.map("wire_bytes", collective.wireBytes) &&
         map.map("runs", collective.runs) &&
         mapMicroseconds(map, collective.seconds) &&
         map.map("part", collective.part) &&
         map.map("cause", collective.cause) &&
         map.map("gathered_again", collective.isGatheredAgain) &&
         map.map("tensors", collective.tensors) &&
         map.map("guilty", collective.guilty) &&
         map.map("remedy", collective.fixIt) &&
         map.map("cost_without", collective.costWithout) &&
         map.map("changes_tried", collective.numTried);
}

static json::Value toJSON(const ExplainedProgram &program) {
  return json::Object{{"name", program.name},
                      {"cost", toJSON(program.cost)},
                      {"collectives", toArray(program.collectives)}};
}

static bool fromJSON(const json::Value &value, ExplainedProgram &program,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", program.name) &&
         map.map("cost", program.cost) &&
         map.map("collectives", program.collectives);
}

json::Value toJSON(const Explanation &explanation) {
  return json::Object{{"mesh", explanation.mesh},
                      {"machine", explanation.machine},
                      {"programs", toArray(explanation.programs)}};
}

bool fromJSON(const json::Value &value, Explanation &explanation,
              json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("mesh", explanation.mesh) &&
         map.map("machine", explanation.machine) &&
         map.map("programs", explanation.programs);
}

} // namespace shardc
