//===- BoxCopy.cpp - Parts of tensors, from one to another ----------------===//

#include "backends/cuda/BoxCopy.h"

#include "shardc-rt/HostArray.h"

using namespace shardc::rt;
using namespace shardc::rt::cuda;

/// Where element `index` of a box lies.
static CUdeviceptr addressOf(const BoxOf &box, absl::Span<const int64_t> index,
                             int64_t elementBytes) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < box.shape.size(); ++dim)
    linear = linear * box.shape[dim] + box.start[dim] + index[dim];
  return box.address + linear * elementBytes;
}

std::vector<Copy2D> shardc::rt::cuda::copyBox(const BoxOf &in, const BoxOf &out,
                                              absl::Span<const int64_t> extent,
                                              int64_t elementBytes) {
  if (numElements(extent) == 0)
    return {};
  // Dimensions from `first` on are one run of bytes in both tensors.
  int rank = extent.size(), first = std::max(rank - 1, 0);
  while (first > 0 && extent[first] == in.shape[first] &&
         extent[first] == out.shape[first])
    --first;
  auto bytesFrom = [&](absl::Span<const int64_t> shape, int dim) {
    return static_cast<uint64_t>(numElements(shape.subspan(dim)) *
                                 elementBytes);
  };
  Copy2D copy{};
  copy.width = bytesFrom(extent, first);
  copy.height = first > 0 ? extent[first - 1] : 1;
  copy.inPitch = bytesFrom(in.shape, first);
  copy.outPitch = bytesFrom(out.shape, first);
  // Iterates over the dimensions before those two.
  std::vector<Copy2D> copies;
  std::vector<int64_t> index(rank);
  for (;;) {
    copy.in = addressOf(in, index, elementBytes);
    copy.out = addressOf(out, index, elementBytes);
    copies.push_back(copy);
    int dim = first - 2;
    while (dim >= 0 && ++index[dim] == extent[dim])
      index[dim--] = 0;
    if (dim < 0)
      return copies;
  }
}

absl::Status shardc::rt::cuda::issue(const Copy2D &copy, const Stream &stream) {
  const cuda::Context &context = stream.context();
  if (copy.height == 1 ||
      (copy.inPitch == copy.width && copy.outPitch == copy.width))
    return context.check(
        context.driver().memcpyDtoDAsync(
            copy.out, copy.in, copy.width * copy.height, stream.get()),
        "cuMemcpyDtoDAsync");
  CUDA_MEMCPY2D request = {};
  request.srcMemoryType = request.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  request.srcDevice = copy.in;
  request.srcPitch = copy.inPitch;
  request.dstDevice = copy.out;
  request.dstPitch = copy.outPitch;
  request.WidthInBytes = copy.width;
  request.Height = copy.height;
  return context.check(context.driver().memcpy2DAsync(&request, stream.get()),
                       "cuMemcpy2DAsync");
}
