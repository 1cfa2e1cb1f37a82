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

#include <cstring>

using namespace shardc::rt;

static constexpr absl::string_view magic("\x93NUMPY", 6);

namespace {
/// The three entries of a header's dictionary.
struct Dictionary {
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

static absl::StatusOr<Dictionary> parseDictionary(absl::string_view text) {
  Dictionary header;
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

absl::Status NpyHeader::parseType(const std::string &descr) {
  if (descr.size() == 3) {
    kind = descr[1];
    width = descr[2] - '0';
    isBigEndian = descr[0] == '>' && width > 1;
  }
  switch (kind) {
  case 'f':
    type = width == 8 ? DType::F64 : DType::F32;
    break;
  case 'i':
    type = width == 8 ? DType::I64 : DType::I32;
    break;
  case 'u':
    type = width >= 4 ? DType::I64 : DType::I32;
    break;
  case 'b':
    type = DType::Bool;
    break;
  }
  bool isSized = kind == 'b' ? width == 1
                             : width == 2 || width == 4 || width == 8 ||
                                   (width == 1 && kind != 'f');
  if (!isSized || !absl::StrContains("<>|=", descr[0]) ||
      !absl::StrContains("fiub", kind))
    return absl::InvalidArgumentError(absl::StrCat(
        "its element type is '", descr,
        "', expected f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 or b1"));
  name = kind == 'b' ? "bool" : absl::StrCat(std::string(1, kind), 8 * width);
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> NpyHeader::parse(absl::string_view bytes,
                                           uint64_t fileBytes) {
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
  absl::StatusOr<Dictionary> dictionary =
      parseDictionary(bytes.substr(start, length));
  if (!dictionary.ok())
    return dictionary.status();
  NpyHeader header;
  if (absl::Status status = header.parseType(dictionary->descr); !status.ok())
    return status;
  header.fortran = dictionary->fortranOrder && dictionary->shape.size() > 1;
  header.ownShape = std::move(dictionary->shape);
  header.ownBegin = start + length;
  uint64_t dataBytes = fileBytes - header.ownBegin;
  uint64_t expected = uint64_t(numElements(header.ownShape)) * header.width;
  if (dataBytes != expected)
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", dataBytes, " bytes of data, but ", header.name, "[",
        absl::StrJoin(header.ownShape, ","), "] takes ", expected));
  return header;
}

bool NpyHeader::isSameInMemory() const {
  return !isBigEndian && name == toString(type);
}

std::string NpyHeader::storage() const {
  return isSameInMemory() && !fortran
             ? ""
             : absl::StrCat(isBigEndian ? "big-endian " : "", name,
                            fortran ? " in Fortran order" : "");
}

/// The bits of an element, as of an unsigned integer of its size.
uint64_t NpyHeader::loadBits(const char *data) const {
  uint64_t bits = 0;
  for (int i = 0; i < width; ++i) {
    int at = isBigEndian ? i : width - 1 - i;
    bits = bits << 8 | static_cast<uint8_t>(data[at]);
  }
  return bits;
}

/// Writes the element that `bits` are of as element `i`.
absl::Status NpyHeader::store(uint64_t bits, HostArray &array,
                              int64_t i) const {
  if (kind == 'u' && width == 8 && bits >> 63)
    return absl::InvalidArgumentError(
        absl::StrCat("element ", i, " is ", bits, ", which i64 cannot hold"));
  if (kind == 'f' && width == 2) {
    array.values<float>()[i] = fromF16(static_cast<uint16_t>(bits));
    return absl::OkStatus();
  }
  // The sign goes on to the left.
  if (kind == 'i' && width < 8 && bits >> (8 * width - 1))
    bits |= ~uint64_t(0) << (8 * width);
  // Little-endian, as all hosts are.
  int64_t size = byteSize(array.dtype);
  std::memcpy(array.data.data() + i * size, &bits, size);
  return absl::OkStatus();
}

absl::Status NpyHeader::decode(const char *data, int64_t count,
                               HostArray &array, int64_t first) const {
  if (count == 0)
    return absl::OkStatus();
  if (isSameInMemory()) {
    std::memcpy(array.data.data() + first * width, data, count * width);
    return absl::OkStatus();
  }
  for (int64_t i = 0; i < count; ++i)
    if (absl::Status status =
            store(loadBits(data + i * width), array, first + i);
        !status.ok())
      return status;
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
  absl::StatusOr<NpyHeader> header = NpyHeader::parse(bytes, bytes.size());
  if (!header.ok())
    return header.status();
  const char *data = bytes.data() + header->begin();
  StoredArray stored;
  stored.array = HostArray(header->dtype(), header->shape());
  stored.storage = header->storage();
  int64_t count = numElements(header->shape());
  absl::Status status;
  if (!header->isFortran()) {
    status = header->decode(data, count, stored.array, 0);
  } else {
    FortranOrder order(header->shape());
    for (int64_t i = 0; i < count && status.ok(); ++i, order.next())
      status = header->decode(data + order.place() * header->elementBytes(), 1,
                              stored.array, i);
  }
  return status.ok() ? absl::StatusOr<StoredArray>(std::move(stored)) : status;
}

absl::StatusOr<StoredArray> shardc::rt::parseNpy(absl::string_view bytes,
                                                 absl::string_view what) {
  absl::StatusOr<StoredArray> array = parse(bytes);
  if (!array.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", array.status().message()));
  return array;
}

absl::StatusOr<std::string>
shardc::rt::formatNpyHeader(DType dtype, absl::Span<const int64_t> shape) {
  absl::string_view descr;
  switch (dtype) {
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
  std::string header = absl::StrCat(
      "{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
      absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  // The data starts at a multiple of 64; the header ends in a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header.push_back('\n');
  std::string bytes(magic);
  bytes.push_back(1);
  bytes.push_back(0);
  bytes.push_back(static_cast<char>(header.size() & 0xff));
  bytes.push_back(static_cast<char>(header.size() >> 8));
  return bytes + header;
}

absl::StatusOr<std::string> shardc::rt::formatNpy(ArrayView array) {
  absl::StatusOr<std::string> bytes = formatNpyHeader(array.dtype, array.shape);
  if (bytes.ok())
    bytes->append(static_cast<const char *>(array.data),
                  numElements(array.shape) * byteSize(array.dtype));
  return bytes;
}

absl::StatusOr<StoredArray>
shardc::rt::readNpy(const std::string &path,
                    const std::function<void()> &onProgress) {
  absl::StatusOr<std::string> bytes = readFile(path, onProgress);
  return bytes.ok() ? parseNpy(*bytes, path) : bytes.status();
}
