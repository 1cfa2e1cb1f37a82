//===- Compare.cpp - Two checkpoints side by side -------------------------===//

#include "Compare.h"

#include "base/Convert.h"
#include "checkpoint/Manifest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace shardc::checkpoint;
using namespace shardc::rt;

static HostArray read(const Checkpoint &checkpoint, size_t number) {
  const TensorType &type = checkpoint.manifest().tensors[number].type;
  HostArray array(type.dtype, type.shape);
  absl::string_view bytes = checkpoint.bytesOf(number);
  if (!bytes.empty())
    std::memcpy(array.data.data(), bytes.data(), bytes.size());
  return array;
}

/// "12 of 80 elements differ, by 0.5 at most, where values reach 3".
static std::string describeDifference(const HostArray &a, const HostArray &b) {
  int64_t count = numElements(a.shape), differing = 0;
  double largest = 0, scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    double x = numberAt(a, i), y = numberAt(b, i);
    scale = std::max({scale, std::fabs(x), std::fabs(y)});
    // Values may be equal and their bits not: 0 and -0.
    int64_t width = byteSize(a.dtype);
    if (std::memcmp(a.data.data() + i * width, b.data.data() + i * width,
                    width) == 0)
      continue;
    ++differing;
    largest = std::max(largest, std::fabs(x - y));
  }
  return absl::StrFormat(
      "%d of %d elements differ, by %.3g at most, where values reach %.3g",
      differing, count, largest, scale);
}

bool shardc::checkpoint::compare(const Checkpoint &a, const Checkpoint &b,
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
    size_t number = other - theirs.tensors.data();
    if (a.bytesOf(i) != b.bytesOf(number))
      differ(absl::StrCat(name, ": ",
                          describeDifference(read(a, i), read(b, number))));
  }
  for (const ManifestTensor &tensor : theirs.tensors)
    if (!ours.findTensor(tensor.type.name))
      differ(absl::StrCat(toString(tensor.role), " \"", tensor.type.name,
                          "\": only in ", b.path()));
  return isSame;
}
