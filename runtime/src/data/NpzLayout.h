//===- NpzLayout.h - Where an .npz archive has its arrays -------*- C++ -*-===//
//
// An archive that is written has its arrays stored, so that the place of every
// byte follows from names, types and shapes alone: several processes can write
// its parts. Checksums are needed for what is not an array. Times are fixed:
// the same arrays give the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_DATA_NPZLAYOUT_H
#define SHARDC_RT_SRC_DATA_NPZLAYOUT_H

#include "shardc-rt/HostArray.h"

#include "absl/status/statusor.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// The layout of an archive. Immutable.
class NpzLayout {
public:
  /// Lays out an array behind those before. InvalidArgument: a name that is too
  /// long, or bf16, which NumPy lacks.
  [[nodiscard]] absl::Status add(const std::string &name, DType dtype,
                                 absl::Span<const int64_t> shape);

  size_t size() const { return members.size(); }
  /// The place of the first element of array `i`.
  uint64_t dataBegin(size_t i) const {
    return members[i].begin + members[i].npyHeader.size();
  }
  /// The bytes that a member's checksum is of: the .npy header, then the data.
  const std::string &npyHeader(size_t i) const { return members[i].npyHeader; }
  uint64_t memberBytes(size_t i) const { return members[i].bytes; }

  /// Bytes of the archive and their place.
  struct Piece {
    uint64_t begin;
    std::string bytes;
  };
  /// All that is not the data of an array, by place: headers, then the
  /// directory. `checksums` are those of members.
  std::vector<Piece> pieces(const std::vector<uint32_t> &checksums) const;

private:
  struct Member {
    std::string name;
    std::string npyHeader;
    uint64_t header; ///< The place of its header in the archive.
    uint64_t begin;  ///< That of its first byte.
    uint64_t bytes;
  };

  std::vector<Member> members;
  uint64_t end = 0; ///< Of the last member.
};

/// The checksum, as of a zip archive, of bytes that are added in any order:
/// those that are not added count as zeros. So the checksums of several
/// processes, which have added all bytes once, are joined by `exclusive or`.
class ScatteredChecksum {
public:
  explicit ScatteredChecksum(uint64_t bytes) : size(bytes) {}

  /// Adds bytes from `at` on that were not added before.
  void add(uint64_t at, const char *data, uint64_t bytes);

  uint32_t sum() const { return own; }
  /// The CRC-32 of `bytes` bytes, all of which were added to sums that `sum`
  /// joins.
  static uint32_t finish(uint32_t sum, uint64_t bytes);

private:
  uint64_t size;
  uint32_t own = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_NPZLAYOUT_H
