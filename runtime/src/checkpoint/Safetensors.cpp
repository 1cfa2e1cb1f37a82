//===- Safetensors.cpp - The files of Hugging Face's safetensors ----------===//

#include "checkpoint/Safetensors.h"

#include "base/Convert.h"
#include "checkpoint/JsonReader.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace shardc::rt;

using Json = nlohmann::json;

/// The largest header that the format allows, in bytes.
static constexpr uint64_t largestHeader = 100000000;
static constexpr absl::string_view metadataKey = "__metadata__";

namespace {
struct NamedType {
  absl::string_view name;
  int bytes;
  std::optional<DType> dtype;
};
} // namespace

/// The types of the format whose elements are whole bytes.
static constexpr NamedType types[] = {
    {"F32", 4, DType::F32},      {"BF16", 2, DType::BF16},
    {"F64", 8, DType::F64},      {"I32", 4, DType::I32},
    {"I64", 8, DType::I64},      {"BOOL", 1, DType::Bool},
    {"F16", 2, std::nullopt},    {"I8", 1, std::nullopt},
    {"U8", 1, std::nullopt},     {"I16", 2, std::nullopt},
    {"U16", 2, std::nullopt},    {"U32", 4, std::nullopt},
    {"U64", 8, std::nullopt},    {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt}};

static const NamedType *findType(absl::string_view name) {
  for (const NamedType &type : types)
    if (type.name == name)
      return &type;
  return nullptr;
}

static absl::string_view nameOf(DType dtype) {
  for (const NamedType &type : types)
    if (type.dtype == dtype)
      return type.name;
  return "";
}

static uint64_t readLength(absl::string_view bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length)); // little-endian hosts
  return length;
}

/// Reads the entry of a tensor, whose data has `dataBytes` and begins at
/// `dataBegin`.
static absl::StatusOr<SafetensorsEntry> readEntry(const std::string &name,
                                                  const Json &json,
                                                  uint64_t dataBegin,
                                                  uint64_t dataBytes) {
  SafetensorsEntry entry;
  entry.name = name;
  std::string what = absl::StrCat("tensor \"", name, "\"");
  JsonReader reader(json, what);
  entry.type = reader.text("dtype");
  entry.shape = reader.integers("shape");
  std::vector<int64_t> range = reader.integers("data_offsets");
  if (!reader.error().ok())
    return reader.error();
  const NamedType *type = findType(entry.type);
  if (!type)
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": unknown type \"", entry.type, "\""));
  entry.dtype = type->dtype;
  if (range.size() != 2 || range[0] > range[1] ||
      uint64_t(range[1]) > dataBytes)
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": its bytes are [", absl::StrJoin(range, ", "), "], expected a ",
        "range within the ", dataBytes, " bytes of data"));
  uint64_t expected = type->bytes;
  for (int64_t size : entry.shape)
    if (__builtin_mul_overflow(expected, uint64_t(size), &expected))
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": its shape has too many elements"));
  if (uint64_t(range[1] - range[0]) != expected)
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": it has ", range[1] - range[0], " bytes, but ", entry.type, "[",
        absl::StrJoin(entry.shape, ","), "] takes ", expected));
  entry.begin = dataBegin + range[0];
  entry.bytes = expected;
  return entry;
}

absl::Status SafetensorsFile::parse() {
  absl::StatusOr<std::string> begin = file.readUpTo(0, sizeof(uint64_t));
  if (!begin.ok())
    return begin.status();
  if (begin->size() < sizeof(uint64_t))
    return absl::InvalidArgumentError(
        "not a safetensors file: it has fewer than 8 bytes");
  const uint64_t length = readLength(*begin);
  if (length > largestHeader)
    return absl::InvalidArgumentError(absl::StrCat(
        "not a safetensors file: its header would have ", length, " bytes"));
  if (length > file.bytes() - sizeof(uint64_t))
    return absl::InvalidArgumentError(
        absl::StrCat("its header of ", length, " bytes is cut off"));
  const uint64_t dataBegin = sizeof(uint64_t) + length;
  absl::StatusOr<std::string> read = file.readUpTo(0, dataBegin);
  if (!read.ok())
    return read.status();
  ownHeader = *std::move(read);
  absl::StatusOr<Json> header =
      parseJson(absl::string_view(ownHeader).substr(sizeof(uint64_t)));
  if (!header.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("its header: ", header.status().message()));
  if (!header->is_object())
    return absl::InvalidArgumentError("its header is not a JSON object");
  for (const auto &[name, value] : header->items()) {
    if (name == metadataKey) {
      JsonReader reader(value, "its metadata");
      for (const auto &[key, unused] : value.items())
        ownMetadata[key] = reader.text(key.c_str());
      if (!reader.error().ok())
        return reader.error();
      continue;
    }
    absl::StatusOr<SafetensorsEntry> entry =
        readEntry(name, value, dataBegin, file.bytes() - dataBegin);
    if (!entry.ok())
      return entry.status();
    ownEntries.push_back(*std::move(entry));
  }
  // Tensors without elements come before those that begin at the same byte.
  std::sort(ownEntries.begin(), ownEntries.end(),
            [](const SafetensorsEntry &a, const SafetensorsEntry &b) {
              return std::tie(a.begin, a.bytes, a.name) <
                     std::tie(b.begin, b.bytes, b.name);
            });
  uint64_t end = dataBegin;
  for (const SafetensorsEntry &entry : ownEntries) {
    if (entry.begin != end)
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", entry.name, "\": its bytes begin at ", entry.begin,
          " of the file, expected ", end, ", where those before it end",
          entry.begin < end ? ": they overlap" : ": there is a hole"));
    end += entry.bytes;
  }
  if (end != file.bytes())
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", file.bytes(), " bytes, but its tensors end at ", end));
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  absl::StatusOr<ReadableFile> opened = ReadableFile::open(path);
  if (!opened.ok())
    return opened.status();
  SafetensorsFile file(path, *std::move(opened));
  absl::Status status = file.parse();
  // Those of reading have the path.
  if (absl::IsDataLoss(status))
    return status;
  if (!status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", status.message()));
  return file;
}

const SafetensorsEntry *SafetensorsFile::find(absl::string_view name) const {
  for (const SafetensorsEntry &entry : ownEntries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

absl::StatusOr<std::string> shardc::rt::formatSafetensorsHeader(
    const std::vector<TensorType> &tensors,
    const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty())
    header[std::string(metadataKey)] = metadata;
  uint64_t end = 0;
  std::set<std::string> names;
  for (const TensorType &tensor : tensors) {
    if (tensor.name == metadataKey || !names.insert(tensor.name).second ||
        !isUtf8(tensor.name))
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", tensor.name, "\": safetensors files cannot hold this ",
          "name", isUtf8(tensor.name) ? "" : ", which is not UTF-8"));
    header[tensor.name] = {{"dtype", std::string(nameOf(tensor.dtype))},
                           {"shape", tensor.shape},
                           {"data_offsets", {end, end + tensor.bytes()}}};
    end += tensor.bytes();
  }
  std::string json = header.is_null() ? "{}" : header.dump();
  // Spaces at the end are part of the header.
  json.append(63 - (8 + json.size() + 63) % 64, ' ');
  uint64_t length = json.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(&bytes[0], &length, sizeof(length));
  return bytes + json;
}

bool shardc::rt::isSafetensorsPath(absl::string_view path) {
  return absl::EndsWith(path, ".safetensors");
}

absl::Status shardc::rt::checkType(const SafetensorsFile &file,
                                   const SafetensorsEntry &entry) {
  if (entry.dtype || entry.type == "F16")
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file.path(), ": tensor \"", entry.name, "\" has the type ", entry.type,
      ", expected F16, BF16, F32, F64, I32, I64 or BOOL"));
}

absl::Status SafetensorsFile::read(const SafetensorsEntry &entry, uint64_t at,
                                   void *out, uint64_t count) const {
  absl::Status status = file.read(entry.begin + at, out, count);
  return status.ok()
             ? status
             : absl::DataLossError(absl::StrCat(
                   status.message(), ", in tensor \"", entry.name, "\""));
}

absl::Status shardc::rt::decodeElements(const SafetensorsFile &file,
                                        const SafetensorsEntry &entry,
                                        int64_t first, int64_t count,
                                        HostArray &out) {
  if (entry.dtype) {
    const int64_t width = byteSize(*entry.dtype);
    return file.read(entry, first * width, out.data.data(), count * width);
  }
  std::vector<uint16_t> bits(count);
  absl::Status status = file.read(entry, 2 * first, bits.data(), 2 * count);
  for (int64_t i = 0; i < count && status.ok(); ++i)
    out.values<float>()[i] = fromF16(bits[i]);
  return status;
}

absl::StatusOr<ArrayMap> shardc::rt::readSafetensors(const std::string &path) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok())
    return file.status();
  ArrayMap arrays;
  for (const SafetensorsEntry &entry : file->entries()) {
    if (absl::Status status = checkType(*file, entry); !status.ok())
      return status;
    HostArray array(entry.dtype.value_or(DType::F32), entry.shape);
    if (absl::Status status =
            decodeElements(*file, entry, 0, numElements(entry.shape), array);
        !status.ok())
      return status;
    arrays.emplace(entry.name, std::move(array));
  }
  return arrays;
}
