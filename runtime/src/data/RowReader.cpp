//===- RowReader.cpp - Arrays that stay in their files --------------------===//

#include "data/RowReader.h"

#include "data/ZipMembers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>

using namespace shardc::rt;

absl::StatusOr<RowReader>
RowReader::create(std::shared_ptr<const ReadableFile> file, uint64_t begin,
                  uint64_t bytes) {
  absl::StatusOr<std::string> start =
      file->readUpTo(begin, std::min(bytes, NpyHeader::largest));
  if (!start.ok())
    return start.status();
  absl::StatusOr<NpyHeader> header = NpyHeader::parse(*start, bytes);
  if (!header.ok())
    return header.status();
  if (header->shape().empty())
    return absl::InvalidArgumentError("it is a scalar");
  if (header->isFortran())
    return absl::FailedPreconditionError("it is in Fortran order");
  return RowReader(std::move(file), begin + header->begin(),
                   *std::move(header));
}

RowReader RowReader::fitted(RowFit newFit, std::vector<int64_t> shape) const {
  RowReader reader = *this;
  reader.fit = std::move(newFit);
  reader.ownShape = std::move(shape);
  return reader;
}

absl::Status RowReader::read(int64_t first, int64_t count, HostArray &out,
                             int64_t toRow) const {
  std::vector<int64_t> shape = ownShape;
  shape[0] = count;
  const int64_t elements = numElements(shape);
  if (elements == 0)
    return absl::OkStatus();
  const int64_t width = header.elementBytes();
  const int64_t rowSize = elements / count;
  std::string bytes(elements * width, '\0');
  if (absl::Status status =
          file->read(begin + first * rowSize * width, &bytes[0], bytes.size());
      !status.ok())
    return status;
  if (!fit)
    return header.decode(bytes.data(), elements, out, toRow * rowSize);
  HostArray stored(header.dtype(), shape);
  if (absl::Status status = header.decode(bytes.data(), elements, stored, 0);
      !status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(file->path(), ": in row ", first, " or one of the ",
                     count - 1, " after it, ", status.message()));
  bool isRounded = false;
  return fit->convert(stored, 0, count, first, out, toRow, isRounded);
}

absl::StatusOr<HostArray> RowReader::readAll() const {
  HostArray array(dtype(), ownShape);
  absl::Status status = read(0, ownShape[0], array, 0);
  return status.ok() ? absl::StatusOr<HostArray>(std::move(array)) : status;
}

absl::StatusOr<std::map<std::string, RowReader>>
shardc::rt::findRows(const std::string &path) {
  absl::StatusOr<ReadableFile> opened = ReadableFile::open(path);
  if (!opened.ok())
    return opened.status();
  auto file = std::make_shared<const ReadableFile>(*std::move(opened));
  absl::StatusOr<std::map<std::string, StoredMember>> members =
      findStoredMembers(*file);
  if (!members.ok())
    return members.status();
  std::map<std::string, RowReader> readers;
  for (const auto &[entry, member] : *members) {
    absl::string_view name = entry;
    if (!absl::ConsumeSuffix(&name, ".npy") || name.empty())
      continue;
    absl::StatusOr<RowReader> reader =
        RowReader::create(file, member.begin, member.bytes);
    // What cannot be read in ranges is read whole, which has errors of its own.
    if (reader.ok())
      readers.emplace(std::string(name), *std::move(reader));
    else if (!absl::IsInvalidArgument(reader.status()) &&
             !absl::IsFailedPrecondition(reader.status()))
      return reader.status();
  }
  return readers;
}
