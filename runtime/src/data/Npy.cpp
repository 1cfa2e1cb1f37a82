//===- Npy.cpp - One NumPy array ------------------------------------------===//

#include "data/Npz.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

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

static absl::StatusOr<HostArray> parse(absl::string_view bytes) {
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

  DType dtype;
  bool widen = false; // u1 becomes i32
  if (header->descr == "<f4")
    dtype = DType::F32;
  else if (header->descr == "<f8")
    dtype = DType::F64;
  else if (header->descr == "<i4")
    dtype = DType::I32;
  else if (header->descr == "<i8")
    dtype = DType::I64;
  else if (header->descr == "|b1")
    dtype = DType::Bool;
  else if (header->descr == "|u1")
    dtype = DType::I32, widen = true;
  else
    return absl::InvalidArgumentError(
        absl::StrCat("its element type is '", header->descr,
                     "', expected <f4, <f8, <i4, <i8, |u1 or |b1"));
  if (header->fortranOrder && header->shape.size() > 1)
    return absl::InvalidArgumentError(
        "it is in Fortran order; save numpy.ascontiguousarray(array)");

  absl::string_view data = bytes.substr(start + length);
  uint64_t expected =
      numElements(header->shape) * (widen ? 1 : byteSize(dtype));
  if (data.size() != expected)
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", data.size(), " bytes of data, but ",
                     describe(dtype, header->shape), " takes ", expected));
  HostArray array(dtype, header->shape);
  if (widen)
    for (size_t i = 0; i < data.size(); ++i)
      array.values<int32_t>()[i] = static_cast<uint8_t>(data[i]);
  else if (!data.empty())
    std::memcpy(array.data.data(), data.data(), data.size());
  return array;
}

absl::StatusOr<HostArray> shardc::rt::parseNpy(absl::string_view bytes,
                                               absl::string_view what) {
  absl::StatusOr<HostArray> array = parse(bytes);
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

absl::StatusOr<HostArray> shardc::rt::readNpy(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad() || content.fail())
    return absl::InvalidArgumentError(absl::StrCat(path, ": cannot read"));
  return parseNpy(content.str(), path);
}
