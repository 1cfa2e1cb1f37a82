//===- ZipMembers.cpp - Where the files of a zip archive lie --------------===//

#include "data/ZipMembers.h"

#include "absl/strings/string_view.h"

#include <optional>
#include <set>

using namespace shardc::rt;

namespace {
/// The central directory: one header per member.
struct Directory {
  uint64_t begin = 0, bytes = 0, members = 0;
};

/// What the directory says of a member.
struct DirectoryEntry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t checksum = 0;
  uint64_t storedBytes = 0, bytes = 0;
  uint64_t header = 0; ///< Bytes into the archive.
};
} // namespace

static constexpr uint32_t endSignature = 0x06054b50,
                          wideLocatorSignature = 0x07064b50,
                          wideEndSignature = 0x06064b50,
                          entrySignature = 0x02014b50,
                          memberSignature = 0x04034b50;
static constexpr size_t endBytes = 22, wideLocatorBytes = 20, wideEndBytes = 56,
                        entryBytes = 46, memberBytes = 30;

/// The little-endian integer of `width` bytes at `at`, which are there.
static uint64_t loadAt(absl::string_view bytes, size_t at, int width) {
  uint64_t value = 0;
  for (int i = width; i-- > 0;)
    value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

/// Where the directory of an archive is; empty: it has none.
static absl::StatusOr<std::optional<Directory>>
findDirectory(const ReadableFile &archive) {
  // The record at the end may have a comment behind it.
  const uint64_t tailBytes =
      std::min<uint64_t>(archive.bytes(), endBytes + 0xffff);
  const uint64_t tailBegin = archive.bytes() - tailBytes;
  absl::StatusOr<std::string> tail = archive.readUpTo(tailBegin, tailBytes);
  if (!tail.ok())
    return tail.status();
  for (size_t at = tail->size() < endBytes ? 0 : tail->size() - endBytes + 1;
       at-- > 0;) {
    if (loadAt(*tail, at, 4) != endSignature ||
        at + endBytes + loadAt(*tail, at + 20, 2) != tail->size())
      continue;
    Directory directory{loadAt(*tail, at + 16, 4), loadAt(*tail, at + 12, 4),
                        loadAt(*tail, at + 10, 2)};
    if (directory.begin != 0xffffffff && directory.bytes != 0xffffffff &&
        directory.members != 0xffff)
      return directory;
    // A number that does not fit is in another record.
    if (at < wideLocatorBytes ||
        loadAt(*tail, at - wideLocatorBytes, 4) != wideLocatorSignature)
      return std::nullopt;
    absl::StatusOr<std::string> wide = archive.readUpTo(
        loadAt(*tail, at - wideLocatorBytes + 8, 8), wideEndBytes);
    if (!wide.ok())
      return wide.status();
    if (wide->size() < wideEndBytes || loadAt(*wide, 0, 4) != wideEndSignature)
      return std::nullopt;
    return Directory{loadAt(*wide, 48, 8), loadAt(*wide, 40, 8),
                     loadAt(*wide, 32, 8)};
  }
  return std::nullopt;
}

/// Replaces numbers that did not fit by those of the extra field `extra`.
static bool widen(absl::string_view extra, DirectoryEntry &entry) {
  constexpr uint64_t tooLarge = 0xffffffff;
  for (size_t at = 0; at + 4 <= extra.size();) {
    const size_t size = loadAt(extra, at + 2, 2);
    if (size > extra.size() - at - 4)
      return false;
    absl::string_view field = extra.substr(at + 4, size);
    if (loadAt(extra, at, 2) == 1)
      for (uint64_t *number :
           {&entry.bytes, &entry.storedBytes, &entry.header}) {
        if (*number != tooLarge)
          continue;
        if (field.size() < 8)
          return false;
        *number = loadAt(field, 0, 8);
        field.remove_prefix(8);
      }
    at += 4 + size;
  }
  return true;
}

/// Reads the entry at the beginning of `rest` and removes it; false: there is
/// none.
static bool takeEntry(absl::string_view &rest, DirectoryEntry &entry) {
  if (rest.size() < entryBytes || loadAt(rest, 0, 4) != entrySignature)
    return false;
  entry.flags = loadAt(rest, 8, 2);
  entry.method = loadAt(rest, 10, 2);
  entry.checksum = loadAt(rest, 16, 4);
  entry.storedBytes = loadAt(rest, 20, 4);
  entry.bytes = loadAt(rest, 24, 4);
  entry.header = loadAt(rest, 42, 4);
  const size_t nameBytes = loadAt(rest, 28, 2),
               extraBytes = loadAt(rest, 30, 2),
               commentBytes = loadAt(rest, 32, 2);
  if (rest.size() < entryBytes + nameBytes + extraBytes + commentBytes)
    return false;
  entry.name = std::string(rest.substr(entryBytes, nameBytes));
  absl::string_view extra = rest.substr(entryBytes + nameBytes, extraBytes);
  rest.remove_prefix(entryBytes + nameBytes + extraBytes + commentBytes);
  return widen(extra, entry);
}

/// The place of a member; empty: it is not stored, or lies elsewhere.
static absl::StatusOr<std::optional<StoredMember>>
locate(const ReadableFile &archive, const DirectoryEntry &entry) {
  constexpr uint16_t isEncrypted = 1;
  if (entry.method != 0 || (entry.flags & isEncrypted) ||
      entry.bytes != entry.storedBytes)
    return std::nullopt;
  absl::StatusOr<std::string> header =
      archive.readUpTo(entry.header, memberBytes);
  if (!header.ok())
    return header.status();
  if (header->size() < memberBytes || loadAt(*header, 0, 4) != memberSignature)
    return std::nullopt;
  StoredMember member{entry.header + memberBytes + loadAt(*header, 26, 2) +
                          loadAt(*header, 28, 2),
                      entry.bytes, entry.checksum};
  if (member.begin > archive.bytes() ||
      member.bytes > archive.bytes() - member.begin)
    return std::nullopt;
  return member;
}

absl::StatusOr<std::map<std::string, StoredMember>>
shardc::rt::findStoredMembers(const ReadableFile &archive) {
  std::map<std::string, StoredMember> members;
  absl::StatusOr<std::optional<Directory>> directory = findDirectory(archive);
  if (!directory.ok())
    return directory.status();
  if (!*directory)
    return members;
  absl::StatusOr<std::string> bytes =
      archive.readUpTo((*directory)->begin, (*directory)->bytes);
  if (!bytes.ok())
    return bytes.status();
  std::set<std::string> names;
  absl::string_view rest = *bytes;
  for (uint64_t i = 0; i < (*directory)->members; ++i) {
    DirectoryEntry entry;
    if (!takeEntry(rest, entry))
      return std::map<std::string, StoredMember>();
    if (!names.insert(entry.name).second) {
      members.erase(entry.name);
      continue;
    }
    absl::StatusOr<std::optional<StoredMember>> member = locate(archive, entry);
    if (!member.ok())
      return member.status();
    if (*member)
      members.emplace(entry.name, **member);
  }
  return members;
}
