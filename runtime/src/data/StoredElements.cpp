//===- StoredElements.cpp - Elements that are read from their file --------===//

#include "data/StoredElements.h"

#include "absl/strings/strip.h"

#include <algorithm>

using namespace shardc::rt;

absl::StatusOr<StoredElements>
StoredElements::create(std::shared_ptr<const ReadableFile> file, uint64_t begin,
                       uint64_t bytes) {
  absl::StatusOr<std::string> start =
      file->readUpTo(begin, std::min(bytes, NpyHeader::largest));
  if (!start.ok())
    return start.status();
  absl::StatusOr<NpyHeader> header = NpyHeader::parse(*start, bytes);
  if (!header.ok())
    return header.status();
  if (header->isFortran())
    return absl::FailedPreconditionError("it is in Fortran order");
  return StoredElements(std::move(file), begin + header->begin(),
                        *std::move(header));
}

absl::Status StoredElements::read(int64_t first, int64_t count, HostArray &out,
                                  int64_t to) const {
  if (count == 0)
    return absl::OkStatus();
  const int64_t width = ownHeader.elementBytes();
  std::string bytes(count * width, '\0');
  absl::Status status =
      file->read(begin + first * width, &bytes[0], bytes.size());
  return status.ok() ? ownHeader.decode(bytes.data(), count, out, to) : status;
}

absl::StatusOr<StoredArrays>
shardc::rt::findStoredArrays(const std::string &path) {
  absl::StatusOr<ReadableFile> opened = ReadableFile::open(path);
  if (!opened.ok())
    return opened.status();
  StoredArrays found;
  found.file = std::make_shared<const ReadableFile>(*std::move(opened));
  absl::StatusOr<std::map<std::string, StoredMember>> members =
      findStoredMembers(*found.file);
  if (!members.ok())
    return members.status();
  for (const auto &[entry, member] : *members) {
    absl::string_view name = entry;
    if (!absl::ConsumeSuffix(&name, ".npy") || name.empty())
      continue;
    absl::StatusOr<StoredElements> elements =
        StoredElements::create(found.file, member.begin, member.bytes);
    if (!elements.ok()) {
      // What cannot be read in ranges is read whole, with errors of its own.
      if (absl::IsInvalidArgument(elements.status()) ||
          absl::IsFailedPrecondition(elements.status()))
        continue;
      return elements.status();
    }
    found.arrays.emplace(std::string(name), *std::move(elements));
    found.members.emplace(std::string(name), member);
  }
  return found;
}
