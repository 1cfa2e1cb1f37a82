//===- ParameterFile.h - The layout of a file of parameters -----*- C++ -*-===//

#ifndef SHARDC_RT_SRC_TRAIN_PARAMETERFILE_H
#define SHARDC_RT_SRC_TRAIN_PARAMETERFILE_H

#include "checkpoint/Files.h"
#include "checkpoint/Safetensors.h"
#include "data/NpzLayout.h"

#include "absl/status/statusor.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// A file of arrays, .npz or .safetensors by the extension, whose bytes are
/// written in any order. The place of each follows from names, types and
/// shapes.
class ParameterFile {
public:
  /// The format is that of the extension, .npz or .safetensors.
  /// InvalidArgument: another extension, or a name or a type that the format
  /// does not have.
  [[nodiscard]] static absl::StatusOr<ParameterFile>
  create(const std::string &path, std::vector<TensorType> tensors);

  /// In the order of the file.
  const std::vector<TensorType> &tensors() const { return ownTensors; }

  /// Bytes of the file up to the end of its last tensor.
  uint64_t dataEnd() const {
    return begins.empty() ? 0 : begins.back() + ownTensors.back().bytes();
  }

  /// Writes bytes of tensor `i`, from byte `offset` of it on, to `file`.
  [[nodiscard]] absl::Status write(WritableFile &file, size_t i,
                                   uint64_t offset, absl::string_view bytes);

  /// The checksums of what was written of each tensor, for `finish`.
  std::vector<uint32_t> sums() const;

  /// Writes what is not of a tensor, once all bytes of these have been written,
  /// by whomever. `all` are the sums of all writers.
  [[nodiscard]] absl::Status
  finish(WritableFile &file, const std::vector<std::vector<uint32_t>> &all);

private:
  std::vector<TensorType> ownTensors;
  std::vector<uint64_t> begins; ///< By tensor.
  bool isNpz = false;
  NpzLayout npz;
  std::vector<ScatteredChecksum> checksums; ///< Of .npz.
  std::string header;                       ///< Of .safetensors.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRAIN_PARAMETERFILE_H
