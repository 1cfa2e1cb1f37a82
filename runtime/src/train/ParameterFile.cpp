//===- ParameterFile.cpp - The layout of a file of parameters -------------===//

#include "train/ParameterFile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace shardc::rt;

absl::StatusOr<ParameterFile>
ParameterFile::create(const std::string &path,
                      std::vector<TensorType> tensors) {
  ParameterFile file;
  file.isNpz = absl::EndsWith(path, ".npz");
  if (!file.isNpz && !isSafetensorsPath(path))
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a file .npz or .safetensors"));
  // As in the reference implementation of safetensors, so that all are aligned.
  if (!file.isNpz)
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const TensorType &a, const TensorType &b) {
                       return byteSize(a.dtype) > byteSize(b.dtype);
                     });
  file.ownTensors = std::move(tensors);
  if (file.isNpz) {
    for (const TensorType &tensor : file.ownTensors) {
      absl::Status status =
          file.npz.add(tensor.name, tensor.dtype, tensor.shape);
      if (!status.ok())
        return absl::InvalidArgumentError(absl::StrCat(
            path, ", array \"", tensor.name, "\": ", status.message()));
      size_t last = file.npz.size() - 1;
      file.begins.push_back(file.npz.dataBegin(last));
      file.checksums.emplace_back(file.npz.memberBytes(last));
    }
    return file;
  }
  absl::StatusOr<std::string> header =
      formatSafetensorsHeader(file.ownTensors, {{"format", "np"}});
  if (!header.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", header.status().message()));
  file.header = *std::move(header);
  uint64_t begin = file.header.size();
  for (const TensorType &tensor : file.ownTensors) {
    file.begins.push_back(begin);
    begin += tensor.bytes();
  }
  return file;
}

absl::Status ParameterFile::write(WritableFile &file, size_t i, uint64_t offset,
                                  absl::string_view bytes) {
  if (isNpz)
    checksums[i].add(npz.npyHeader(i).size() + offset, bytes.data(),
                     bytes.size());
  return file.write(begins[i] + offset, bytes);
}

std::vector<uint32_t> ParameterFile::sums() const {
  std::vector<uint32_t> sums;
  for (const ScatteredChecksum &checksum : checksums)
    sums.push_back(checksum.sum());
  return sums;
}

absl::Status
ParameterFile::finish(WritableFile &file,
                      const std::vector<std::vector<uint32_t>> &all) {
  if (!isNpz)
    return file.write(0, header);
  std::vector<uint32_t> joined;
  for (size_t i = 0; i < npz.size(); ++i) {
    const std::string &ownHeader = npz.npyHeader(i);
    ScatteredChecksum ofHeader(npz.memberBytes(i));
    ofHeader.add(0, ownHeader.data(), ownHeader.size());
    uint32_t sum = ofHeader.sum();
    for (const std::vector<uint32_t> &sums : all)
      sum ^= sums[i];
    joined.push_back(ScatteredChecksum::finish(sum, npz.memberBytes(i)));
  }
  for (const NpzLayout::Piece &piece : npz.pieces(joined))
    if (absl::Status status = file.write(piece.begin, piece.bytes);
        !status.ok())
      return status;
  return absl::OkStatus();
}
