//===- Manifest.cpp - What a checkpoint consists of -----------------------===//

#include "checkpoint/Manifest.h"

#include "base/Crc32.h"
#include "checkpoint/JsonReader.h"
#include "exec/Arrays.h"
#include "exec/Shards.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <set>

using namespace shardc::rt;

using OrderedJson = nlohmann::ordered_json;

static constexpr int manifestVersion = 1;
/// The text begins with the checksum of itself, whose digits count as zeros.
static constexpr absl::string_view prefix = "{\n  \"crc32\": \"";
static constexpr absl::string_view noChecksum = "00000000";

uint32_t shardc::rt::checksumOf(absl::string_view bytes) {
  return extendCrc32(0, bytes);
}

std::string ManifestShard::describe() const {
  std::string text = absl::StrCat("device ", device);
  for (size_t dim = 0; dim < start.size(); ++dim)
    absl::StrAppend(&text, dim ? ", " : ", [", start[dim], ":",
                    start[dim] + shape[dim]);
  return start.empty() ? text : text + "]";
}

const ManifestFile *Manifest::findFile(absl::string_view name) const {
  for (const ManifestFile &file : files)
    if (file.name == name)
      return &file;
  return nullptr;
}

const ManifestTensor *Manifest::findTensor(absl::string_view name) const {
  for (const ManifestTensor &tensor : tensors)
    if (tensor.type.name == name)
      return &tensor;
  return nullptr;
}

std::vector<ManifestTensor> shardc::rt::tensorsOf(const PlanSpec &plan) {
  std::vector<ManifestTensor> tensors;
  for (size_t number = 0; number < plan.tensors.size(); ++number) {
    const TensorSpec &spec = plan.tensors[number];
    if (spec.role != Role::Parameter && spec.role != Role::State)
      continue;
    ManifestTensor &tensor = tensors.emplace_back();
    tensor.type = {spec.name, spec.dtype, spec.shape};
    tensor.role = spec.role;
    tensor.parameter = spec.parameter;
    const int rank = plan.firstRankWith(number);
    const Mesh &mesh = plan.ranks()[rank].mesh;
    for (int64_t device : holdersOf(mesh, spec.sharding)) {
      Shard shard = shardOf(mesh, spec.sharding, spec.shape, device);
      if (numElements(shard.valid) > 0 || numElements(spec.shape) == 0)
        tensor.shards.push_back(
            {plan.deviceOf(rank, device), shard.start, shard.valid, 0});
      if (numElements(spec.shape) == 0)
        break;
    }
  }
  return tensors;
}

std::string
shardc::rt::fingerprintOf(const std::vector<ManifestTensor> &tensors) {
  std::set<std::string> lines;
  for (const ManifestTensor &tensor : tensors)
    lines.insert(absl::StrCat(toString(tensor.role), " ", tensor.type.name, " ",
                              describe(tensor.type.dtype, tensor.type.shape),
                              " ", tensor.parameter, "\n"));
  uint64_t hash = 0xcbf29ce484222325u;
  for (const std::string &line : lines)
    for (char letter : line) {
      hash ^= static_cast<uint8_t>(letter);
      hash *= 0x100000001b3u;
    }
  return absl::StrFormat("%016x", hash);
}

static std::string toHex(uint32_t checksum) {
  return absl::StrFormat("%08x", checksum);
}

static OrderedJson toJson(const TrainProgress &progress) {
  OrderedJson json;
  json["rows"] = progress.rows;
  json["batch_size"] = progress.batchSize;
  json["seed"] = progress.seed;
  json["shuffle"] = progress.shuffle;
  return json;
}

static OrderedJson toJson(const ManifestTensor &tensor) {
  OrderedJson json;
  json["name"] = tensor.type.name;
  json["role"] = std::string(toString(tensor.role));
  if (!tensor.parameter.empty())
    json["parameter"] = tensor.parameter;
  json["dtype"] = std::string(toString(tensor.type.dtype));
  json["shape"] = tensor.type.shape;
  json["file"] = tensor.file;
  json["begin"] = tensor.begin;
  json["shards"] = OrderedJson::array();
  for (const ManifestShard &shard : tensor.shards)
    json["shards"].push_back({{"device", shard.device},
                              {"start", shard.start},
                              {"shape", shard.shape},
                              {"crc32", toHex(shard.checksum)}});
  return json;
}

/// Adds a member, an array with an element a line.
static void append(std::string &text, absl::string_view key,
                   const OrderedJson &value) {
  absl::StrAppend(&text, ",\n  \"", key, "\": ");
  if (!value.is_array()) {
    text += value.dump();
    return;
  }
  text += "[";
  for (size_t i = 0; i < value.size(); ++i)
    absl::StrAppend(&text, i ? ",\n    " : "\n    ", value[i].dump());
  text += "\n  ]";
}

std::string shardc::rt::formatManifest(const Manifest &manifest) {
  const TrainProgress &progress = manifest.progress;
  std::string text = absl::StrCat(prefix, noChecksum, "\"");
  append(text, "format", "shardc-checkpoint");
  append(text, "version", manifestVersion);
  append(text, "id", manifest.id);
  append(text, "sequence", manifest.sequence);
  append(text, "written_at", manifest.writtenAt);
  append(text, "model", manifest.model);
  append(text, "fingerprint", fingerprintOf(manifest.tensors));
  append(text, "mesh", manifest.mesh);
  append(text, "step", progress.steps);
  append(text, "epoch", progress.epoch());
  append(text, "step_in_epoch", progress.stepInEpoch());
  append(text, "loss", progress.finalLoss);
  append(text, "first_loss", progress.firstLoss);
  append(text, "epoch_loss_sum", progress.epochLossSum);
  append(text, "data", toJson(progress));
  OrderedJson files = OrderedJson::array(), indexes = OrderedJson::array(),
              tensors = OrderedJson::array();
  for (const ManifestFile &file : manifest.files)
    files.push_back({{"name", file.name},
                     {"bytes", file.bytes},
                     {"header_bytes", file.headerBytes},
                     {"header_crc32", toHex(file.headerChecksum)}});
  for (const ManifestIndex &index : manifest.indexes)
    indexes.push_back({{"name", index.name},
                       {"bytes", index.bytes},
                       {"crc32", toHex(index.checksum)}});
  for (const ManifestTensor &tensor : manifest.tensors)
    tensors.push_back(toJson(tensor));
  append(text, "files", files);
  append(text, "indexes", indexes);
  append(text, "tensors", tensors);
  text += "\n}\n";
  text.replace(prefix.size(), noChecksum.size(), toHex(checksumOf(text)));
  return text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The name of a file in the folder itself.
static std::string fileName(JsonReader &reader, const char *key) {
  std::string name = reader.text(key);
  if (name.empty() || name.find('/') != name.npos || name[0] == '.')
    reader.fail(absl::StrCat("\"", key, "\" is not the name of a file"));
  return name;
}

static DType dtypeOf(JsonReader &reader) {
  std::string name = reader.text("dtype");
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I32,
                      DType::I64, DType::Bool})
    if (name == toString(dtype))
      return dtype;
  reader.fail(absl::StrCat("unknown type \"", name, "\""));
  return DType::F32;
}

static Role roleOf(JsonReader &reader) {
  std::string name = reader.text("role");
  for (Role role : {Role::Parameter, Role::State})
    if (name == toString(role))
      return role;
  reader.fail(absl::StrCat("unknown role \"", name, "\""));
  return Role::Parameter;
}

/// Whether `shard` is a part of a tensor of this shape.
static bool isWithin(const ManifestShard &shard,
                     const std::vector<int64_t> &shape) {
  if (shard.start.size() != shape.size() || shard.shape.size() != shape.size())
    return false;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (shard.start[dim] > shape[dim] ||
        shard.shape[dim] > shape[dim] - shard.start[dim])
      return false;
  return true;
}

static absl::StatusOr<ManifestTensor> readTensor(const nlohmann::json &json,
                                                 const Manifest &manifest) {
  ManifestTensor tensor;
  JsonReader named(json, "a tensor");
  tensor.type.name = named.text("name");
  std::string what = absl::StrCat("tensor \"", tensor.type.name, "\"");
  JsonReader reader(json, what);
  tensor.type.dtype = dtypeOf(reader);
  tensor.type.shape = reader.integers("shape");
  tensor.role = roleOf(reader);
  if (json.is_object() && json.contains("parameter"))
    tensor.parameter = reader.text("parameter");
  tensor.file = fileName(reader, "file");
  tensor.begin = reader.integer("begin");
  const ManifestFile *file = manifest.findFile(tensor.file);
  uint64_t bytes = byteSize(tensor.type.dtype);
  for (int64_t size : tensor.type.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(size), &bytes))
      reader.fail("its shape has too many elements");
  if (!file || tensor.begin < file->headerBytes || tensor.begin > file->bytes ||
      bytes > file->bytes - tensor.begin)
    reader.fail("its bytes are not within its file");
  if (!reader.error().ok())
    return reader.error();
  int64_t elements = 0;
  for (const nlohmann::json &element : reader.array("shards")) {
    JsonReader part(element, absl::StrCat(what, ", a shard"));
    ManifestShard shard;
    shard.device = part.integer("device");
    shard.start = part.integers("start");
    shard.shape = part.integers("shape");
    shard.checksum = part.checksum("crc32");
    if (!isWithin(shard, tensor.type.shape))
      part.fail("it is not within its tensor");
    if (!part.error().ok())
      return part.error();
    elements += numElements(shard.shape);
    tensor.shards.push_back(std::move(shard));
  }
  if (elements != numElements(tensor.type.shape))
    reader.fail("its shards do not make up the tensor");
  return reader.error().ok() ? absl::StatusOr<ManifestTensor>(std::move(tensor))
                             : reader.error();
}

/// Reads the members that describe the training.
static void readTraining(JsonReader &reader, Manifest &manifest) {
  manifest.id = reader.text("id");
  manifest.sequence = reader.integer("sequence");
  manifest.writtenAt = reader.integer("written_at");
  manifest.model = reader.text("model");
  manifest.mesh = reader.text("mesh");
  TrainProgress &progress = manifest.progress;
  progress.steps = reader.integer("step");
  progress.finalLoss = reader.number("loss");
  progress.firstLoss = reader.number("first_loss");
  progress.epochLossSum = reader.number("epoch_loss_sum");
  const nlohmann::json &object = reader.object("data");
  JsonReader data(object, "\"data\"");
  progress.rows = data.integer("rows");
  progress.batchSize = data.integer("batch_size");
  progress.shuffle = data.boolean("shuffle");
  // The seed has all of u64.
  auto seed = object.find("seed");
  if (seed == object.end() || !seed->is_number_unsigned())
    data.fail("\"seed\" is not an integer of at least 0");
  else
    progress.seed = *seed->get_ptr<const uint64_t *>();
  if (!data.error().ok())
    reader.fail(data.error().message());
}

static absl::Status readFiles(JsonReader &reader, Manifest &manifest) {
  for (const nlohmann::json &element : reader.array("files")) {
    JsonReader part(element, "a file");
    ManifestFile &file = manifest.files.emplace_back();
    file.name = fileName(part, "name");
    file.bytes = part.integer("bytes");
    file.headerBytes = part.integer("header_bytes");
    file.headerChecksum = part.checksum("header_crc32");
    if (file.headerBytes > file.bytes)
      part.fail("its header is longer than the file");
    if (!part.error().ok())
      return part.error();
  }
  for (const nlohmann::json &element : reader.array("indexes")) {
    JsonReader part(element, "an index");
    ManifestIndex &index = manifest.indexes.emplace_back();
    index.name = fileName(part, "name");
    index.bytes = part.integer("bytes");
    index.checksum = part.checksum("crc32");
    if (!part.error().ok())
      return part.error();
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> shardc::rt::parseManifest(absl::string_view text) {
  std::string zeroed(text);
  uint32_t checksum = 0;
  if (!absl::StartsWith(text, prefix) ||
      text.size() < prefix.size() + noChecksum.size() ||
      !absl::SimpleHexAtoi(text.substr(prefix.size(), noChecksum.size()),
                           &checksum))
    return absl::InvalidArgumentError("it is not a manifest of a checkpoint");
  zeroed.replace(prefix.size(), noChecksum.size(), noChecksum.data());
  if (checksumOf(zeroed) != checksum)
    return absl::InvalidArgumentError(
        "it is damaged: its content does not match its checksum");
  absl::StatusOr<nlohmann::json> json = parseJson(text);
  if (!json.ok())
    return json.status();
  JsonReader reader(*json, "it");
  if (reader.text("format") != "shardc-checkpoint")
    reader.fail("it is not a manifest of a checkpoint");
  if (int64_t found = reader.integer("version"); found != manifestVersion)
    reader.fail(absl::StrCat("it is of version ", found,
                             "; this program reads version ", manifestVersion));
  Manifest manifest;
  readTraining(reader, manifest);
  if (absl::Status status = readFiles(reader, manifest); !status.ok())
    return status;
  std::set<std::string> names;
  for (const nlohmann::json &element : reader.array("tensors")) {
    absl::StatusOr<ManifestTensor> tensor = readTensor(element, manifest);
    if (!tensor.ok())
      return tensor.status();
    if (!names.insert(tensor->type.name).second)
      reader.fail(
          absl::StrCat("tensor \"", tensor->type.name, "\" is there twice"));
    manifest.tensors.push_back(*std::move(tensor));
  }
  if (reader.text("fingerprint") != fingerprintOf(manifest.tensors))
    reader.fail("its fingerprint is not that of its tensors");
  return reader.error().ok() ? absl::StatusOr<Manifest>(std::move(manifest))
                             : reader.error();
}
