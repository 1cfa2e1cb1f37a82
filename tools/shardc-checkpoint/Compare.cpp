//===- Compare.cpp - Two checkpoints side by side -------------------------===//

#include "Compare.h"

#include "base/Convert.h"
#include "base/ReadableFile.h"
#include "checkpoint/Manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace shardc::checkpoint;
using namespace shardc::rt;

/// How far two tensors of one type are apart; empty: they have the same bits.
/// "12 of 80 elements differ, by 0.5 at most, where values reach 3".
static absl::StatusOr<std::string> findDifference(const Checkpoint &a,
                                                  size_t inA,
                                                  const Checkpoint &b,
                                                  size_t inB) {
  constexpr int64_t pieceElements = int64_t(1) << 17;
  const TensorType &type = a.manifest().tensors[inA].type;
  const int64_t count = numElements(type.shape), width = byteSize(type.dtype);
  int64_t differing = 0;
  double largest = 0, scale = 0;
  for (int64_t at = 0; at < count; at += pieceElements) {
    const int64_t size = std::min(pieceElements, count - at);
    HostArray first(type.dtype, {size}), second(type.dtype, {size});
    auto read = [&](const Checkpoint &checkpoint, size_t number,
                    HostArray &piece) {
      return checkpoint.fileOf(number).read(
          checkpoint.manifest().tensors[number].begin + at * width,
          piece.data.data(), size * width);
    };
    absl::Status status = read(a, inA, first);
    status.Update(read(b, inB, second));
    if (!status.ok())
      return status;
    for (int64_t i = 0; i < size; ++i) {
      double x = numberAt(first, i), y = numberAt(second, i);
      scale = std::max({scale, std::fabs(x), std::fabs(y)});
      // Values may be equal and their bits not: 0 and -0.
      if (std::memcmp(first.data.data() + i * width,
                      second.data.data() + i * width, width) == 0)
        continue;
      ++differing;
      largest = std::max(largest, std::fabs(x - y));
    }
  }
  if (differing == 0)
    return std::string();
  return absl::StrFormat(
      "%d of %d elements differ, by %.3g at most, where values reach %.3g",
      differing, count, largest, scale);
}

absl::StatusOr<bool> shardc::checkpoint::compare(const Checkpoint &a,
                                                 const Checkpoint &b,
                                                 std::ostream &out) {
  bool isSame = true;
  auto differ = [&](const std::string &text) {
    out << text << "\n";
    isSame = false;
  };
  auto compareField = [&](const char *what, auto first, auto second) {
    if (!(first == second))
      differ(absl::StrCat(what, ": ", first, " and ", second));
  };
  const TrainProgress &first = a.progress(), &second = b.progress();
  compareField("step", first.steps, second.steps);
  compareField("loss", first.finalLoss, second.finalLoss);
  compareField("seed", first.seed, second.seed);
  compareField("rows of data", first.rows, second.rows);
  compareField("batch size", first.batchSize, second.batchSize);
  compareField("shuffled", first.shuffle, second.shuffle);
  const Manifest &ours = a.manifest(), &theirs = b.manifest();
  for (size_t i = 0; i < ours.tensors.size(); ++i) {
    const TensorType &type = ours.tensors[i].type;
    std::string name =
        absl::StrCat(toString(ours.tensors[i].role), " \"", type.name, "\"");
    const ManifestTensor *other = theirs.findTensor(type.name);
    if (!other) {
      differ(absl::StrCat(name, ": only in ", a.path()));
      continue;
    }
    std::string here = describe(type.dtype, type.shape),
                there = describe(other->type.dtype, other->type.shape);
    if (here != there) {
      differ(absl::StrCat(name, ": ", here, " and ", there));
      continue;
    }
    absl::StatusOr<std::string> difference =
        findDifference(a, i, b, other - theirs.tensors.data());
    if (!difference.ok())
      return difference.status();
    if (!difference->empty())
      differ(absl::StrCat(name, ": ", *difference));
  }
  for (const ManifestTensor &tensor : theirs.tensors)
    if (!ours.findTensor(tensor.type.name))
      differ(absl::StrCat(toString(tensor.role), " \"", tensor.type.name,
                          "\": only in ", b.path()));
  return isSame;
}
