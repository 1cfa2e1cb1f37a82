//===- Npz.cpp - Archives of NumPy arrays ---------------------------------===//

#include "data/Npz.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <memory>
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

static absl::StatusOr<Archive> open(const std::string &path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive)
    return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = absl::StrCat(
      path, ": cannot open as an .npz archive: ", zip_error_strerror(&error));
  zip_error_fini(&error);
  return code == ZIP_ER_NOENT || code == ZIP_ER_OPEN
             ? absl::NotFoundError(text)
             : absl::InvalidArgumentError(text);
}

/// The content of entry `index`. Read in pieces, so that a false size in the
/// archive allocates nothing.
static absl::StatusOr<std::string>
readEntry(zip_t *archive, zip_uint64_t index, const std::string &what,
          const std::function<void()> &onProgress) {
  std::unique_ptr<zip_file_t, Close> file(zip_fopen_index(archive, index, 0));
  if (!file)
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", zip_strerror(archive)));
  std::string bytes;
  constexpr size_t piece = size_t(1) << 20;
  for (;;) {
    size_t size = bytes.size();
    bytes.resize(size + piece);
    zip_int64_t count = zip_fread(file.get(), &bytes[size], piece);
    if (count < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": damaged: ", zip_file_strerror(file.get())));
    bytes.resize(size + count);
    if (count == 0)
      return bytes;
    if (onProgress)
      onProgress();
  }
}

absl::StatusOr<std::map<std::string, absl::StatusOr<StoredArray>>>
shardc::rt::readNpzEntries(const std::string &path,
                           const std::set<std::string> &leftOut,
                           const std::function<void()> &onProgress) {
  absl::StatusOr<Archive> archive = open(path, ZIP_RDONLY | ZIP_CHECKCONS);
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
