//===- Npz.cpp - Archives of NumPy arrays ---------------------------------===//

#include "data/Npz.h"

#include "base/Crc32.h"
#include "base/ReadFile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <libdeflate.h>
#include <memory>
#include <unistd.h>
#include <zip.h>

using namespace shardc::rt;

namespace {
struct Discard {
  void operator()(zip_t *archive) const { zip_discard(archive); }
};
struct Close {
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
} // namespace

static absl::StatusOr<Archive> openArchive(const std::string &path) {
  absl::StatusOr<int> file = openRegularFile(path);
  if (!file.ok())
    return file.status();
  int code = 0;
  Archive archive(zip_fdopen(*file, ZIP_CHECKCONS, &code));
  if (archive)
    return archive;
  close(*file);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = absl::StrCat(
      path, ": cannot open as an .npz archive: ", zip_error_strerror(&error));
  zip_error_fini(&error);
  return absl::InvalidArgumentError(text);
}

/// What entry `index` has in the archive, or its content if `flags` are 0:
/// about `expected` bytes. Read in pieces, so that a false size in the archive
/// allocates nothing.
static absl::StatusOr<std::string>
readInPieces(zip_t *archive, zip_uint64_t index, zip_flags_t flags,
             uint64_t expected, const std::string &what,
             const std::function<void()> &onProgress) {
  std::unique_ptr<zip_file_t, Close> file(
      zip_fopen_index(archive, index, flags));
  if (!file)
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", zip_strerror(archive)));
  // The first one with a byte behind the end, where the end is found.
  constexpr size_t most = size_t(1) << 20;
  const size_t piece = std::min<uint64_t>(expected, most - 1) + 1;
  std::string bytes;
  size_t size = 0;
  for (;;) {
    if (size == bytes.size())
      bytes.resize(size + (size == 0 ? piece : most));
    zip_int64_t count =
        zip_fread(file.get(), &bytes[size], bytes.size() - size);
    if (count < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": damaged: ", zip_file_strerror(file.get())));
    size += count;
    if (count == 0) {
      bytes.resize(size);
      return bytes;
    }
    if (onProgress)
      onProgress();
  }
}

/// Whether the content of an entry is inflated at once: it takes a third of the
/// time. Others come in pieces, with progress between them.
static bool isInflatedAtOnce(const zip_stat_t &entry) {
  constexpr zip_uint64_t known = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                 ZIP_STAT_COMP_METHOD | ZIP_STAT_CRC |
                                 ZIP_STAT_ENCRYPTION_METHOD;
  // Deflate makes at most 1032 bytes of one; a larger size is false.
  constexpr zip_uint64_t most = 64 << 20, mostOfByte = 1032;
  return (entry.valid & known) == known &&
         entry.comp_method == ZIP_CM_DEFLATE &&
         entry.encryption_method == ZIP_EM_NONE && entry.size <= most &&
         entry.size / mostOfByte <= entry.comp_size;
}

/// The content of entry `index`.
static absl::StatusOr<std::string>
readEntry(zip_t *archive, zip_uint64_t index, const std::string &what,
          const std::function<void()> &onProgress) {
  zip_stat_t entry;
  zip_stat_init(&entry);
  if (zip_stat_index(archive, index, 0, &entry) != 0 ||
      !isInflatedAtOnce(entry))
    return readInPieces(archive, index, 0, entry.size, what, onProgress);
  absl::StatusOr<std::string> deflated = readInPieces(
      archive, index, ZIP_FL_COMPRESSED, entry.comp_size, what, onProgress);
  if (!deflated.ok())
    return deflated.status();
  std::string bytes(entry.size, '\0');
  std::unique_ptr<libdeflate_decompressor,
                  decltype(&libdeflate_free_decompressor)>
      inflate(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflate ||
      libdeflate_deflate_decompress(
          inflate.get(), deflated->data(), deflated->size(), bytes.data(),
          bytes.size(), nullptr) != LIBDEFLATE_SUCCESS ||
      extendCrc32(0, bytes) != entry.crc)
    // Its words for the damage.
    return readInPieces(archive, index, 0, entry.size, what, onProgress);
  return bytes;
}

absl::StatusOr<std::map<std::string, absl::StatusOr<StoredArray>>>
shardc::rt::readNpzEntries(const std::string &path,
                           const std::set<std::string> &leftOut,
                           const std::function<void()> &onProgress) {
  absl::StatusOr<Archive> archive = openArchive(path);
  if (!archive.ok())
    return archive.status();
  std::map<std::string, absl::StatusOr<StoredArray>> arrays;
  zip_int64_t entries = zip_get_num_entries(archive->get(), 0);
  for (zip_int64_t index = 0; index < entries; ++index) {
    const char *raw = zip_get_name(archive->get(), index, 0);
    std::string entry = raw ? raw : "";
    absl::string_view name = entry;
    bool isNamed = absl::ConsumeSuffix(&name, ".npy") && !name.empty();
    if (isNamed && leftOut.count(std::string(name)))
      continue;
    std::string what = absl::StrCat(path, ", array \"", name, "\"");
    absl::StatusOr<StoredArray> array = absl::InvalidArgumentError(absl::StrCat(
        path, ": entry \"", entry, "\" is not an array (NAME.npy)"));
    if (isNamed) {
      absl::StatusOr<std::string> bytes =
          readEntry(archive->get(), index, what, onProgress);
      array = bytes.ok() ? parseNpy(*bytes, what) : bytes.status();
    }
    if (!arrays.emplace(std::string(name), std::move(array)).second)
      return absl::InvalidArgumentError(absl::StrCat(what, " is there twice"));
  }
  return arrays;
}

absl::StatusOr<ArrayMap>
shardc::rt::readNpz(const std::string &path,
                    const std::function<void()> &onProgress) {
  absl::StatusOr<std::map<std::string, absl::StatusOr<StoredArray>>> entries =
      readNpzEntries(path, {}, onProgress);
  if (!entries.ok())
    return entries.status();
  ArrayMap arrays;
  for (auto &[name, entry] : *entries) {
    if (!entry.ok())
      return entry.status();
    arrays.emplace(name, std::move(entry->array));
  }
  return arrays;
}
