//===- ExplanationJson.cpp - Explanations as JSON -------------------------===//
//
// One pair of functions per struct of Explanation.h, in its order. Fields are
// written at once, in the order of their names: with a json::Value of all of
// them, the compilation of a deep model takes twice the memory.
//
//===----------------------------------------------------------------------===//

#include "shardc/Report/Explanation.h"

using namespace llvm;

namespace shardc {

static void writeValue(json::OStream &json, StringRef text) {
  json.value(text);
}

static void writeValue(json::OStream &json, int64_t number) {
  json.value(number);
}

template <typename T>
static void writeField(json::OStream &json, StringRef name, const T &value) {
  json.attributeBegin(name);
  writeValue(json, value);
  json.attributeEnd();
}

/// Nothing if there is no value: plans without a pipeline have no such fields.
static void writeNumber(json::OStream &json, StringRef name,
                        std::optional<int64_t> value) {
  if (value)
    json.attribute(name, *value);
}

/// Null if there is no value.
template <typename T>
static void writeField(json::OStream &json, StringRef name,
                       const std::optional<T> &value) {
  if (value)
    writeField(json, name, *value);
  else
    json.attribute(name, nullptr);
}

template <typename T>
static void writeArray(json::OStream &json, StringRef name,
                       const std::vector<T> &items) {
  json.attributeArray(name, [&] {
    for (const T &item : items)
      writeValue(json, item);
  });
}

static bool mapMicroseconds(json::ObjectMapper &map, double &seconds) {
  if (!map.map("microseconds", seconds))
    return false;
  seconds /= 1e6;
  return true;
}

/// They are left out if there are none.
static bool mapInputMicroseconds(json::ObjectMapper &map, double &seconds) {
  std::optional<double> microseconds;
  if (!map.mapOptional("input_microseconds", microseconds))
    return false;
  seconds = microseconds.value_or(0) / 1e6;
  return true;
}

static void writeValue(json::OStream &json, const SourceOp &op) {
  json.object([&] {
    writeField(json, "op", op.op);
    writeField(json, "source", op.source);
  });
}

static bool fromJSON(const json::Value &value, SourceOp &op, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("op", op.op) && map.map("source", op.source);
}

static void writeValue(json::OStream &json, const AxisOrigin &origin) {
  json.object([&] {
    writeField(json, "axis", origin.axis);
    writeField(json, "name", origin.name);
    writeField(json, "source", origin.source);
    writeArray(json, "through", origin.through);
  });
}

static bool fromJSON(const json::Value &value, AxisOrigin &origin,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("axis", origin.axis) && map.map("name", origin.name) &&
         map.map("source", origin.source) && map.map("through", origin.through);
}

static void writeValue(json::OStream &json, const ChainEnd &end) {
  json.object([&] {
    writeArray(json, "arguments", end.arguments);
    writeField(json, "op", end.op);
    writeArray(json, "origins", end.origins);
    writeField(json, "part", end.part);
    writeField(json, "source", end.source);
    writeNumber(json, "stage", end.stage);
  });
}

static bool fromJSON(const json::Value &value, ChainEnd &end, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("op", end.op) && map.map("part", end.part) &&
         map.map("source", end.source) && map.map("arguments", end.arguments) &&
         map.map("origins", end.origins) && map.map("stage", end.stage);
}

static void writeValue(json::OStream &json, const ProgramCost &cost) {
  json.object([&] {
    if (cost.inputSeconds > 0)
      json.attribute("input_microseconds", cost.inputSeconds * 1e6);
    json.attribute("matmul_flops_per_device", cost.matmulFlops);
    json.attribute("may_be_less", cost.mayBeLess);
    json.attribute("microseconds", cost.seconds * 1e6);
    writeNumber(json, "peak_bytes_per_device", cost.peakBytes);
    json.attribute("state_bytes_per_device", cost.stateBytes);
    writeNumber(json, "wire_bytes_of_all_ranks", cost.sumOfWireBytes);
    json.attribute("wire_bytes_per_device", cost.wireBytes);
  });
}

static bool fromJSON(const json::Value &value, ProgramCost &cost,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("wire_bytes_per_device", cost.wireBytes) &&
         map.map("matmul_flops_per_device", cost.matmulFlops) &&
         map.map("state_bytes_per_device", cost.stateBytes) &&
         mapMicroseconds(map, cost.seconds) &&
         mapInputMicroseconds(map, cost.inputSeconds) &&
         map.map("may_be_less", cost.mayBeLess) &&
         map.map("peak_bytes_per_device", cost.peakBytes) &&
         map.map("wire_bytes_of_all_ranks", cost.sumOfWireBytes);
}

static void writeValue(json::OStream &json, const AnnotationEdit &edit) {
  json.object([&] {
    writeField(json, "name", edit.name);
    writeField(json, "source", edit.source);
    writeField(json, "text", edit.text);
  });
}

static bool fromJSON(const json::Value &value, AnnotationEdit &edit,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("source", edit.source) && map.map("name", edit.name) &&
         map.map("text", edit.text);
}

static void writeValue(json::OStream &json, const FixIt &fixIt) {
  json.object([&] {
    writeField(json, "cost", fixIt.cost);
    writeArray(json, "edits", fixIt.edits);
  });
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

static void writeValue(json::OStream &json, const MovedTensor &tensor) {
  json.object([&] {
    writeField(json, "consumer", tensor.consumer);
    writeField(json, "dtype", tensor.dtype);
    writeField(json, "from", tensor.from);
    json.attribute("move", tensor.move);
    writeField(json, "name", tensor.name);
    writeField(json, "producer", tensor.producer);
    writeField(json, "remedy", tensor.fixIt);
    writeArray(json, "shape", tensor.shape);
    writeField(json, "to", tensor.to);
    json.attribute("wire_bytes", tensor.wireBytes);
  });
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

static void writeValue(json::OStream &json,
                       const ExplainedCollective &collective) {
  json.object([&] {
    writeArray(json, "axes", collective.axes);
    json.attribute("bytes", collective.bytes);
    writeField(json, "cause", collective.cause);
    json.attribute("changes_tried", collective.numTried);
    writeField(json, "cost_without", collective.costWithout);
    json.attribute("gathered_again", collective.isGatheredAgain);
    json.attribute("group_size", collective.groupSize);
    writeField(json, "guilty", collective.guilty);
    writeField(json, "kind", collective.kind);
    json.attribute("microseconds", collective.seconds * 1e6);
    writeField(json, "part", collective.part);
    writeField(json, "remedy", collective.fixIt);
    json.attribute("runs", collective.runs);
    writeArray(json, "tensors", collective.tensors);
    json.attribute("wire_bytes", collective.wireBytes);
  });
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

static void writeValue(json::OStream &json, const ExplainedProgram &program) {
  json.object([&] {
    writeArray(json, "collectives", program.collectives);
    writeField(json, "cost", program.cost);
    writeField(json, "name", program.name);
  });
}

static bool fromJSON(const json::Value &value, ExplainedProgram &program,
                     json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", program.name) &&
         map.map("cost", program.cost) &&
         map.map("collectives", program.collectives);
}

void writeJSON(const Explanation &explanation, raw_ostream &os) {
  json::OStream json(os);
  json.object([&] {
    writeField(json, "machine", explanation.machine);
    writeField(json, "mesh", explanation.mesh);
    writeArray(json, "programs", explanation.programs);
  });
}

bool fromJSON(const json::Value &value, Explanation &explanation,
              json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("mesh", explanation.mesh) &&
         map.map("machine", explanation.machine) &&
         map.map("programs", explanation.programs);
}

} // namespace shardc
