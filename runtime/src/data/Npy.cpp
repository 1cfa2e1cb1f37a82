//===- Npy.cpp - One NumPy array ------------------------------------------===//

#include "data/Npz.h"

#include "base/Convert.h"
#include "base/ReadFile.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace shardc::rt;

static constexpr absl::string_view magic("\x93NUMPY", 6);

namespace {
/// The three entries of a header's dictionary.
struct Header {
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};
} // namespace

/// The text between `'key':` and the next entry, or an error.
static absl::StatusOr<absl::string_view> entry(absl::string_view dictionary,
                                               absl::string_view key) {
  std::string quoted = absl::StrCat("'", key, "':");
  size_t at = dictionary.find(quoted);
  if (at == absl::string_view::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("its header has no '", key, "'"));
  return absl::StripLeadingAsciiWhitespace(
      dictionary.substr(at + quoted.size()));
}

static absl::Status parseShape(absl::string_view text,
                               std::vector<int64_t> &shape) {
  size_t close = text.find(')');
  if (text.empty() || text[0] != '(' || close == absl::string_view::npos)
    return absl::InvalidArgumentError("its shape is not a tuple");
  int64_t elements = 1;
  for (absl::string_view part :
       absl::StrSplit(text.substr(1, close - 1), ',', absl::SkipWhitespace())) {
    int64_t size;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(part), &size) ||
        size < 0 || size > (int64_t(1) << 40))
      return absl::InvalidArgumentError(
          absl::StrCat("its shape has the dimension '", part, "'"));
    if (size > 0 && elements > (int64_t(1) << 44) / size)
      return absl::InvalidArgumentError("its shape has too many elements");
    elements *= size;
    shape.push_back(size);
  }
  return absl::OkStatus();
}

static absl::StatusOr<Header> parseHeader(absl::string_view text) {
  Header header;
  absl::StatusOr<absl::string_view> descr = entry(text, "descr");
  if (!descr.ok())
    return descr.status();
  size_t close = descr->find('\'', 1);
  if (descr->empty() || (*descr)[0] != '\'' || close == absl::string_view::npos)
    return absl::InvalidArgumentError(
        "its element type is not a plain one (structured arrays are not read)");
  header.descr = std::string(descr->substr(1, close - 1));
  absl::StatusOr<absl::string_view> order = entry(text, "fortran_order");
  if (!order.ok())
    return order.status();
  header.fortranOrder = absl::StartsWith(*order, "True");
  if (!header.fortranOrder && !absl::StartsWith(*order, "False"))
    return absl::InvalidArgumentError("its fortran_order is not a boolean");
  absl::StatusOr<absl::string_view> shape = entry(text, "shape");
  if (!shape.ok())
    return shape.status();
  if (absl::Status status = parseShape(*shape, header.shape); !status.ok())
    return status;
  return header;
}

namespace {
/// An element type of NumPy.
struct NpyElementType {
  std::string name; ///< "f16", "u8".
  char kind = 0;    ///< f, i, u or b.
  int bytes = 0;
  bool isBigEndian = false;
  DType dtype = DType::F32; ///< Holds all its values, but for those of u64.
};
} // namespace

static absl::StatusOr<NpyElementType> parseType(const std::string &descr) {
  NpyElementType type;
  if (descr.size() == 3) {
    type.kind = descr[1];
    type.bytes = descr[2] - '0';
    type.isBigEndian = descr[0] == '>' && type.bytes > 1;
  }
  switch (type.kind) {
  case 'f':
    type.dtype = type.bytes == 8 ? DType::F64 : DType::F32;
    break;
  case 'i':
    type.dtype = type.bytes == 8 ? DType::I64 : DType::I32;
    break;
  case 'u':
    type.dtype = type.bytes >= 4 ? DType::I64 : DType::I32;
    break;
  case 'b':
    type.dtype = DType::Bool;
    break;
  }
  bool isSized = type.kind == 'b'
                     ? type.bytes == 1
                     : type.bytes == 2 || type.bytes == 4 || type.bytes == 8 ||
                           (type.bytes == 1 && type.kind != 'f');
  if (!isSized || !absl::StrContains("<>|=", descr[0]) ||
      !absl::StrContains("fiub", type.kind))
    return absl::InvalidArgumentError(absl::StrCat(
        "its element type is '", descr,
        "', expected f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 or b1"));
  type.name = type.kind == 'b'
                  ? "bool"
                  : absl::StrCat(std::string(1, type.kind), 8 * type.bytes);
  return type;
}

/// The bits of an element, as of an unsigned integer of its size.
static uint64_t loadBits(const char *data, const NpyElementType &type) {
  uint64_t bits = 0;
  for (int i = 0; i < type.bytes; ++i) {
    int at = type.isBigEndian ? i : type.bytes - 1 - i;
    bits = bits << 8 | static_cast<uint8_t>(data[at]);
  }
  return bits;
}

/// Writes the element that `bits` are of as element `i`.
static absl::Status storeElement(const NpyElementType &type, uint64_t bits,
                                 HostArray &array, int64_t i) {
  if (type.kind == 'u' && type.bytes == 8 && bits >> 63)
    return absl::InvalidArgumentError(
        absl::StrCat("element ", i, " is ", bits, ", which i64 cannot hold"));
  if (type.kind == 'f' && type.bytes == 2) {
    array.values<float>()[i] = fromF16(static_cast<uint16_t>(bits));
    return absl::OkStatus();
  }
  // The sign goes on to the left.
  if (type.kind == 'i' && type.bytes < 8 && bits >> (8 * type.bytes - 1))
    bits |= ~uint64_t(0) << (8 * type.bytes);
  // Little-endian, as all hosts are.
  int64_t size = byteSize(array.dtype);
  std::memcpy(array.data.data() + i * size, &bits, size);
  return absl::OkStatus();
}

namespace {
/// Goes through the elements of an array in the order of C and says where each
/// is in that of Fortran.
class FortranOrder {
public:
  explicit FortranOrder(const std::vector<int64_t> &shape)
      : shape(shape), index(shape.size()) {}

  int64_t place() const {
    int64_t place = 0;
    for (size_t dim = shape.size(); dim-- > 0;)
      place = place * shape[dim] + index[dim];
    return place;
  }

  void next() {
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        return;
      index[dim] = 0;
    }
  }

private:
  const std::vector<int64_t> &shape;
  std::vector<int64_t> index;
};
} // namespace

static absl::StatusOr<StoredArray> parse(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, magic) || bytes.size() < 10)
    return absl::InvalidArgumentError("not an .npy file");
  int major = static_cast<uint8_t>(bytes[6]);
  if (major < 1 || major > 3)
    return absl::InvalidArgumentError(
        absl::StrCat(".npy format version ", major, ", expected 1 to 3"));
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + lengthBytes)
    return absl::InvalidArgumentError("its header is cut off");
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[8 + i]))
              << (8 * i);
  size_t start = 8 + lengthBytes;
  if (length > bytes.size() - start)
    return absl::InvalidArgumentError("its header is cut off");
  absl::StatusOr<Header> header = parseHeader(bytes.substr(start, length));
  if (!header.ok())
    return header.status();

  absl::StatusOr<NpyElementType> type = parseType(header->descr);
  if (!type.ok())
    return type.status();
  absl::string_view data = bytes.substr(start + length);
  int64_t count = numElements(header->shape);
  if (data.size() != uint64_t(count) * type->bytes)
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", data.size(), " bytes of data, but ", type->name, "[",
        absl::StrJoin(header->shape, ","), "] takes ", count * type->bytes));
  StoredArray stored;
  stored.array = HostArray(type->dtype, header->shape);
  bool isFortran = header->fortranOrder && header->shape.size() > 1;
  if (isFortran || type->isBigEndian || type->name != toString(type->dtype))
    stored.storage =
        absl::StrCat(type->isBigEndian ? "big-endian " : "", type->name,
                     isFortran ? " in Fortran order" : "");
  if (stored.storage.empty()) {
    if (!data.empty())
      std::memcpy(stored.array.data.data(), data.data(), data.size());
    return stored;
  }
  FortranOrder order(header->shape);
  for (int64_t i = 0; i < count; ++i, order.next()) {
    int64_t place = isFortran ? order.place() : i;
    uint64_t bits = loadBits(data.data() + place * type->bytes, *type);
    if (absl::Status status = storeElement(*type, bits, stored.array, i);
        !status.ok())
      return status;
  }
  return stored;
}

absl::StatusOr<StoredArray> shardc::rt::parseNpy(absl::string_view bytes,
                                                 absl::string_view what) {
  absl::StatusOr<StoredArray> array = parse(bytes);
  if (!array.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", array.status().message()));
  return array;
}

absl::StatusOr<std::string> shardc::rt::formatNpy(ArrayView array) {
  absl::string_view descr;
  switch (array.dtype) {
  case DType::F32:
    descr = "<f4";
    break;
  case DType::F64:
    descr = "<f8";
    break;
  case DType::I32:
    descr = "<i4";
    break;
  case DType::I64:
    descr = "<i8";
    break;
  case DType::Bool:
    descr = "|b1";
    break;
  case DType::BF16:
    return absl::InvalidArgumentError("NumPy's files cannot hold bf16");
  }
  std::string header = absl::StrCat("{'descr': '", descr,
                                    "', 'fortran_order': False, 'shape': (",
                                    absl::StrJoin(array.shape, ", "),
                                    array.shape.size() == 1 ? ",), }" : "), }");
  // The data starts at a multiple of 64; the header ends in a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header.push_back('\n');
  std::string bytes(magic);
  bytes.push_back(1);
  bytes.push_back(0);
  bytes.push_back(static_cast<char>(header.size() & 0xff));
  bytes.push_back(static_cast<char>(header.size() >> 8));
  bytes += header;
  bytes.append(static_cast<const char *>(array.data),
               numElements(array.shape) * byteSize(array.dtype));
  return bytes;
}

absl::StatusOr<StoredArray> shardc::rt::readNpy(const std::string &path) {
  absl::StatusOr<std::string> bytes = readFile(path);
  return bytes.ok() ? parseNpy(*bytes, path) : bytes.status();
}
