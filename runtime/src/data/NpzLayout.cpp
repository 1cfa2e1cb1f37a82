//===- NpzLayout.cpp - Where an .npz archive has its arrays ---------------===//

#include "data/NpzLayout.h"

#include "base/Crc32.h"

#include "data/Npz.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <zlib.h>

using namespace shardc::rt;

/// From here on a number is in a field of 64 bits (zip64), and this one in the
/// field that is too narrow.
static constexpr uint64_t tooLarge = 0xffffffff;
static constexpr uint64_t headerBytes = 30, wideHeaderBytes = 20;

/// `value` as `width` bytes, little-endian.
static std::string little(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i, value /= 256)
    bytes += static_cast<char>(value);
  return bytes;
}

static std::string narrow(uint64_t value) {
  return little(std::min(value, tooLarge), 4);
}

absl::Status NpzLayout::add(const std::string &name, DType dtype,
                            absl::Span<const int64_t> shape) {
  absl::StatusOr<std::string> npyHeader = formatNpyHeader(dtype, shape);
  if (!npyHeader.ok())
    return npyHeader.status();
  Member member{absl::StrCat(name, ".npy"), *std::move(npyHeader), end, 0, 0};
  if (member.name.size() > 0xffff)
    return absl::InvalidArgumentError("its name is too long for an archive");
  member.bytes = member.npyHeader.size() + numElements(shape) * byteSize(dtype);
  member.begin = end + headerBytes + member.name.size() +
                 (member.bytes >= tooLarge ? wideHeaderBytes : 0);
  end = member.begin + member.bytes;
  members.push_back(std::move(member));
  return absl::OkStatus();
}

/// The fields that both headers of a member have: version to flags, method,
/// time, checksum, and sizes, of which `size` are the bytes.
static std::string commonFields(const std::string &name, uint64_t size,
                                bool isWide, uint32_t checksum) {
  bool isAscii = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
  // Not compressed; the first of January 1980.
  return little(isWide ? 45 : 20, 2) + little(isAscii ? 0 : 0x800, 2) +
         little(0, 2) + little(0, 2) + little(0x21, 2) + little(checksum, 4) +
         narrow(size) + narrow(size) + little(name.size(), 2);
}

std::vector<NpzLayout::Piece>
NpzLayout::pieces(const std::vector<uint32_t> &checksums) const {
  std::vector<Piece> pieces;
  std::string directory;
  for (size_t i = 0; i < members.size(); ++i) {
    const Member &member = members[i];
    const std::string size = little(member.bytes, 8);
    const bool isWide = member.bytes >= tooLarge;
    std::string extra =
        isWide ? little(1, 2) + little(16, 2) + size + size : "";
    pieces.push_back(
        {member.header,
         little(0x04034b50, 4) +
             commonFields(member.name, member.bytes, isWide, checksums[i]) +
             little(extra.size(), 2) + member.name + extra + member.npyHeader});
    std::string wide = isWide ? size + size : "";
    if (member.header >= tooLarge)
      wide += little(member.header, 8);
    extra = wide.empty() ? "" : little(1, 2) + little(wide.size(), 2) + wide;
    directory +=
        little(0x02014b50, 4) + little(45, 2) +
        commonFields(member.name, member.bytes, !wide.empty(), checksums[i]) +
        little(extra.size(), 2) + little(0, 10) + narrow(member.header) +
        member.name + extra;
  }
  const uint64_t count = members.size(), bytes = directory.size();
  if (count >= 0xffff || bytes >= tooLarge || end >= tooLarge)
    directory += little(0x06064b50, 4) + little(44, 8) + little(45, 2) +
                 little(45, 2) + little(0, 8) + little(count, 8) +
                 little(count, 8) + little(bytes, 8) + little(end, 8) +
                 little(0x07064b50, 4) + little(0, 4) + little(end + bytes, 8) +
                 little(1, 4);
  const std::string number = little(std::min<uint64_t>(count, 0xffff), 2);
  directory += little(0x06054b50, 4) + little(0, 4) + number + number +
               narrow(bytes) + narrow(end) + little(0, 2);
  pieces.push_back({end, std::move(directory)});
  return pieces;
}

/// The CRC-32 of zeros: that of a and b zeros gives that of a + b.
static uint32_t checksumOfZeros(uint64_t bytes) {
  uint32_t sum = 0;
  uint32_t ofPower = extendCrc32(0, {"\0", 1});
  for (uint64_t power = 1; bytes > 0; power *= 2, bytes /= 2) {
    if (bytes & 1)
      sum = crc32_combine64(sum, ofPower, power);
    ofPower = crc32_combine64(ofPower, ofPower, power);
  }
  return sum;
}

// But for a constant, which depends on the length alone, a CRC is linear in the
// bits: that of a sum (exclusive or) of messages is the sum of their CRCs. A
// piece is a message that is zero elsewhere.
void ScatteredChecksum::add(uint64_t at, const char *data, uint64_t bytes) {
  if (bytes == 0)
    return;
  uint32_t piece = extendCrc32(0, {data, bytes}) ^ checksumOfZeros(bytes);
  own ^= crc32_combine64(piece, 0, size - at - bytes);
}

uint32_t ScatteredChecksum::finish(uint32_t sum, uint64_t bytes) {
  return sum ^ checksumOfZeros(bytes);
}
