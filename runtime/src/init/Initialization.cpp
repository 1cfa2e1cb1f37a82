//===- Initialization.cpp - Initial values of a plan's tensors ------------===//

#include "init/Initialization.h"

#include "init/Initialize.h"

#include <algorithm>

using namespace shardc::rt;

/// Elements between two reports: some milliseconds.
static constexpr int64_t elementsPerReport = int64_t(1) << 18;

Initialization::Initialization(const PlanSpec &plan,
                               const ExecutorOptions &options)
    : options(options) {
  for (const TensorSpec &tensor : plan.tensors)
    if (tensor.role == Role::Parameter || tensor.role == Role::State)
      elements += numElements(tensor.shape);
}

void Initialization::report(int64_t added) {
  // Shards may overlap, or be those of other processes.
  filled = std::min(filled + added, numElements(current->shape));
  if (options.onInitialize)
    options.onInitialize(before + filled, elements);
}

absl::Status Initialization::fill(const TensorSpec &tensor,
                                  absl::Span<const int64_t> start,
                                  absl::Span<const int64_t> validShape,
                                  absl::Span<const int64_t> localShape,
                                  void *out) {
  if (current && current != &tensor)
    before += numElements(current->shape);
  if (current != &tensor)
    filled = 0;
  current = &tensor;
  std::vector<int64_t> first(start.begin(), start.end()),
      valid(validShape.begin(), validShape.end());
  // A scalar is one row.
  int64_t rows = valid.empty() ? 1 : valid[0];
  int64_t rowSize = valid.empty() ? 1 : numElements(validShape.subspan(1)),
          rowBytes = valid.empty() ? 0
                                   : numElements(localShape.subspan(1)) *
                                         byteSize(tensor.dtype);
  int64_t piece =
      std::max<int64_t>(1, elementsPerReport / std::max<int64_t>(1, rowSize));
  for (int64_t row = 0; row < rows; row += piece) {
    int64_t count = std::min(piece, rows - row);
    if (!valid.empty()) {
      first[0] = start[0] + row;
      valid[0] = count;
    }
    if (absl::Status status = initializeShard(
            tensor.initializer, options.seed, tensor.name, tensor.dtype,
            tensor.shape, first, valid, localShape,
            static_cast<char *>(out) + row * rowBytes);
        !status.ok())
      return status;
    report(count * rowSize);
  }
  return absl::OkStatus();
}
