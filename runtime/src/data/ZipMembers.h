//===- ZipMembers.h - Where the files of a zip archive lie ------*- C++ -*-===//
//
// libzip reads archives from members' beginnings to their ends. Members that
// are stored, which is to say not compressed, can also be read in ranges: this
// finds them. The format is described in PKWARE's APPNOTE.TXT; archives beyond
// 4 GiB (zip64) are read, too.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_DATA_ZIPMEMBERS_H
#define SHARDC_RT_SRC_DATA_ZIPMEMBERS_H

#include "base/ReadableFile.h"

#include <cstdint>
#include <map>
#include <string>

namespace shardc::rt {

/// A member whose bytes lie in the archive as they are.
struct StoredMember {
  uint64_t begin = 0; ///< Bytes into the archive.
  uint64_t bytes = 0;
  uint32_t checksum = 0; ///< CRC-32 of the bytes.
};

/// The stored members of an archive by name. Those that are compressed or
/// encrypted, or whose place is doubtful, are left out, all of them if the
/// archive is damaged: reading with libzip says why. Errors are those of
/// reading the file.
[[nodiscard]] absl::StatusOr<std::map<std::string, StoredMember>>
findStoredMembers(const ReadableFile &archive);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_DATA_ZIPMEMBERS_H
