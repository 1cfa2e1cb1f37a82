//===- Initialization.cpp - Initial values of a plan's tensors ------------===//

#include "init/Initialization.h"

#include "init/Initialize.h"

#include <algorithm>
#include <atomic>

using namespace shardc::rt;

/// Elements of a task at most, some tens of microseconds; and tasks between two
/// reports, some milliseconds.
static constexpr int64_t elementsPerTask = 1024, tasksPerReport = 256;

namespace {
/// A shard in blocks, of which each is a task.
class Tasks {
public:
  struct Block {
    std::vector<int64_t> start, valid; ///< As those of `initializeShard`.
    int64_t place;                     ///< Of its first element in the shard.
  };

  Tasks(absl::Span<const int64_t> start, absl::Span<const int64_t> valid,
        absl::Span<const int64_t> local)
      : count(numElements(valid) > 0), start(start), valid(valid),
        local(local) {
    // Dimensions before the one that is cut are cut into single indices.
    int64_t inner = numElements(valid);
    for (; cut < static_cast<int64_t>(valid.size()) && inner > elementsPerTask;
         ++cut) {
      inner /= valid[cut];
      size = std::max<int64_t>(1, elementsPerTask / inner);
      inCut = (valid[cut] + size - 1) / size;
      count *= inCut;
      if (inner <= elementsPerTask)
        return;
    }
    cut = -1;
  }

  Block operator[](int64_t task) const {
    Block block{{start.begin(), start.end()}, {valid.begin(), valid.end()}, 0};
    for (int64_t dim = cut; dim >= 0; --dim) {
      const int64_t width = dim == cut ? size : 1,
                    parts = dim == cut ? inCut : valid[dim],
                    first = task % parts * width;
      task /= parts;
      block.start[dim] += first;
      block.valid[dim] = std::min(width, valid[dim] - first);
      block.place += first * numElements(local.subspan(dim + 1));
    }
    return block;
  }

  int64_t count;

private:
  const absl::Span<const int64_t> start, valid, local;
  /// The dimension that is cut into `inCut` parts of `size` indices; -1: none.
  int64_t cut = 0, size = 1, inCut = 1;
};
} // namespace

static void doAll(int64_t tasks, absl::FunctionRef<void(int64_t)> task) {
  for (int64_t i = 0; i < tasks; ++i)
    task(i);
}

Initialization::Initialization(const PlanSpec &plan,
                               const ExecutorOptions &options, ForEach own)
    : options(options), forEach(own ? std::move(own) : doAll) {
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
  const Tasks tasks(start, validShape, localShape);
  auto fillBlock = [&](const Tasks::Block &block) {
    return initializeShard(
        tensor.initializer, options.seed, tensor.name, tensor.dtype,
        tensor.shape, block.start, block.valid, localShape,
        static_cast<char *>(out) + block.place * byteSize(tensor.dtype));
  };
  // An error is one of the initializer, whatever the block is.
  if (tasks.count > 0)
    if (absl::Status status = fillBlock(tasks[0]); !status.ok())
      return status;
  for (int64_t first = 0; first < tasks.count; first += tasksPerReport) {
    const int64_t end = std::min(tasks.count, first + tasksPerReport);
    std::atomic<int64_t> added = 0;
    forEach(end - first, [&](int64_t task) {
      const Tasks::Block block = tasks[first + task];
      if (first + task > 0)
        (void)fillBlock(block);
      added += numElements(block.valid);
    });
    report(added);
  }
  return absl::OkStatus();
}
