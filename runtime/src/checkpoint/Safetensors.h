//===- Safetensors.h - The files of Hugging Face's safetensors --*- C++ -*-===//
//
// A safetensors file is: the length n of the header as a little-endian u64; n
// bytes of JSON, which give each tensor its type, shape and range of bytes; and
// the bytes, row-major and little-endian, of one tensor behind the other
// without a hole. https://github.com/huggingface/safetensors describes the
// format. Files are not trusted: every field is checked.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_SAFETENSORS_H
#define SHARDC_RT_SRC_CHECKPOINT_SAFETENSORS_H

#include "base/ReadableFile.h"
#include "shardc-rt/HostArray.h"

#include "absl/status/statusor.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardc::rt {

/// A tensor of a file.
struct SafetensorsEntry {
  std::string name;
  std::string type; ///< "F32", "BF16", "F16", ...
  /// Empty: the runtime has no such type.
  std::optional<DType> dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0; ///< Bytes into the file.
  uint64_t bytes = 0;
};

/// A file that has been checked, of which any bytes of tensors can be read.
/// Threads may share a constant one.
class SafetensorsFile {
public:
  /// NotFound: it cannot be opened. DataLoss: it cannot be read.
  /// InvalidArgument names the file and the tensor: not of this format, cut
  /// off, ranges of bytes that overlap, leave holes or do not fit type and
  /// shape, a name twice.
  [[nodiscard]] static absl::StatusOr<SafetensorsFile>
  open(const std::string &path);

  const std::string &path() const { return ownPath; }
  /// In the order of their bytes.
  const std::vector<SafetensorsEntry> &entries() const { return ownEntries; }
  const std::map<std::string, std::string> &metadata() const {
    return ownMetadata;
  }
  /// The tensor `name`, or null.
  const SafetensorsEntry *find(absl::string_view name) const;
  /// Reads `count` bytes of a tensor from its byte `at` on. DataLoss names the
  /// file and the tensor: they are gone, or cannot be read.
  [[nodiscard]] absl::Status read(const SafetensorsEntry &entry, uint64_t at,
                                  void *out, uint64_t count) const;
  /// Length and header.
  const std::string &header() const { return ownHeader; }
  /// Of the whole file.
  uint64_t bytes() const { return file.bytes(); }

private:
  SafetensorsFile(std::string path, ReadableFile file)
      : ownPath(std::move(path)), file(std::move(file)) {}
  absl::Status parse();

  std::string ownPath, ownHeader;
  ReadableFile file;
  std::vector<SafetensorsEntry> ownEntries;
  std::map<std::string, std::string> ownMetadata;
};

/// Name, type and shape of a tensor to write.
struct TensorType {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;

  uint64_t bytes() const { return numElements(shape) * byteSize(dtype); }
};

/// Length and header of a file with `tensors`, one behind the other in this
/// order; the bytes that follow begin at a multiple of 64. InvalidArgument: a
/// name that is not UTF-8, is "__metadata__" or is there twice.
[[nodiscard]] absl::StatusOr<std::string>
formatSafetensorsHeader(const std::vector<TensorType> &tensors,
                        const std::map<std::string, std::string> &metadata);

/// Whether a path is to be read and written as a safetensors file: its
/// extension says so.
bool isSafetensorsPath(absl::string_view path);

/// InvalidArgument: a type that the runtime neither has nor converts.
[[nodiscard]] absl::Status checkType(const SafetensorsFile &file,
                                     const SafetensorsEntry &entry);

/// Puts elements [first, first + count) of an entry, whose type has been
/// checked, at the beginning of `out`; f16 becomes f32. Errors are those of
/// `SafetensorsFile::read`.
[[nodiscard]] absl::Status decodeElements(const SafetensorsFile &file,
                                          const SafetensorsEntry &entry,
                                          int64_t first, int64_t count,
                                          HostArray &out);

/// All arrays of a file by name; f16 becomes f32. As SafetensorsFile::open and
/// read; InvalidArgument also for a type that the runtime does not have.
[[nodiscard]] absl::StatusOr<ArrayMap> readSafetensors(const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_SAFETENSORS_H
