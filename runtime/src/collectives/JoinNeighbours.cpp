//===- JoinNeighbours.cpp - One region instead of several tensors ---------===//

#include "collectives/Collectives.h"
#include "shardc-rt/HostArray.h"

using namespace shardc::rt;

/// Bytes from the end of `first` to the start of `second`; negative if they are
/// in another order.
static int64_t gap(const void *first, int64_t bytes, const void *second) {
  return static_cast<const char *>(second) - static_cast<const char *>(first) -
         bytes;
}

/// The padding between two tensors if it is the same everywhere; -1 otherwise.
static int64_t paddingBetween(const CollectiveTensor &first,
                              const CollectiveTensor &second,
                              int64_t alignment) {
  int64_t bytes = numElements(first.inShape) * byteSize(first.dtype);
  int64_t padding = gap(first.in[0], bytes, second.in[0]);
  if (first.dtype != second.dtype || first.isReduced != second.isReduced ||
      padding < 0 || padding >= alignment ||
      padding % byteSize(first.dtype) != 0)
    return -1;
  for (size_t device = 0; device < first.in.size(); ++device)
    if (gap(first.in[device], bytes, second.in[device]) != padding ||
        gap(first.out[device], bytes, second.out[device]) != padding)
      return -1;
  return padding;
}

void shardc::rt::joinNeighbours(CollectiveSpec &spec, uint64_t alignment) {
  if (spec.kind != CollectiveKind::AllReduce)
    return;
  std::vector<CollectiveTensor> joined;
  for (CollectiveTensor &tensor : spec.tensors) {
    int64_t padding =
        joined.empty() ? -1 : paddingBetween(joined.back(), tensor, alignment);
    if (padding < 0) {
      joined.push_back(std::move(tensor));
      continue;
    }
    CollectiveTensor &last = joined.back();
    last.inShape = {numElements(last.inShape) + padding / byteSize(last.dtype) +
                    numElements(tensor.inShape)};
    last.outShape = last.inShape;
  }
  spec.tensors = std::move(joined);
}
