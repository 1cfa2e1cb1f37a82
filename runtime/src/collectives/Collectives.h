//===- Collectives.h - The interface of collectives -------------*- C++ -*-===//
//
// The interface of all ways to move data between devices. A backend prepares a
// collective once, when a plan is loaded, and then runs it every step; cts/
// holds the tests that every backend passes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_COLLECTIVES_H
#define SHARDC_RT_SRC_COLLECTIVES_COLLECTIVES_H

#include "base/Mesh.h"
#include "plan/PlanSpec.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include <memory>
#include <vector>

namespace shardc::rt {

/// One tensor of a collective: shapes as in `CollectiveItem`, and its address
/// on each device of this process, by device number; null on the devices of
/// other processes. Virtual devices of one
/// process may have the same operand, and those that get the same result may
/// share its memory.
struct CollectiveTensor {
  DType dtype;
  std::vector<int64_t> inShape;
  std::vector<int64_t> outShape;
  int dim = 0;
  int splitDim = -1;
  std::vector<const void *> in;
  std::vector<void *> out;
  /// The devices of a group in one process share the operand, which is the
  /// reduction over them already: of a node of the group's tree.
  bool isReduced = false;
};

/// A collective over all groups that `axes` form.
struct CollectiveSpec {
  CollectiveKind kind;
  Reduction reduction = Reduction::Sum;
  std::vector<int> axes;
  std::vector<int> targetAxes; ///< CollectivePermute.
  std::vector<CollectiveTensor> tensors;
  /// By device its process; empty: as `devicesOfProcess` says.
  std::vector<int> processes = {};
  /// CollectivePermute: if not empty, a permutation of the members of a group.
  std::vector<int> sources = {};

  /// The member of its group whose operand `device` receives in a
  /// CollectivePermute.
  int64_t sourceOf(const Mesh &mesh, int64_t device) const {
    int64_t index = mesh.index(device, targetAxes);
    return sources.empty() ? index : sources[index];
  }
};

/// A collective that can be run many times, one run at a time. A run consists
/// of the tasks of `start`, then all tasks, then those of `next`, and so on;
/// when all have returned, all results are complete. Tasks are independent and
/// may run on any threads; their number and results do not depend on the number
/// of threads. During a run nobody else writes the operands or accesses the
/// results. Behind the tasks of `start` the collective is in flight: until it
/// goes on, devices may compute, and others may run.
class PreparedCollective {
public:
  virtual ~PreparedCollective() = default;
  virtual int64_t numTasks() const = 0;
  /// Runs task `task` in [0, numTasks()). After an error the results are
  /// undefined.
  virtual absl::Status runTask(int64_t task) = 0;
  /// Bytes of the results of all tasks, as far as they are known: how much
  /// there is to do.
  virtual uint64_t bytes() const { return 0; }
  using VisitBytes =
      absl::FunctionRef<void(const void *data, uint64_t bytes, bool isWrite)>;
  /// Visits all bytes that the tasks [begin, end) access, perhaps some between
  /// them. False: it is not known which, and none is visited.
  virtual bool visitAccesses(int64_t /*begin*/, int64_t /*end*/,
                             VisitBytes /*visit*/) const {
    return false;
  }
  /// Whether it moves so few bytes that it is done at its start: others would
  /// not be done sooner without it.
  virtual bool isShort() const { return false; }
  /// What can be done before, as soon as the operands are complete; null:
  /// nothing. Only of the first part of a collective.
  virtual PreparedCollective *start() { return nullptr; }
  /// What follows when all tasks have returned; null: nothing.
  virtual PreparedCollective *next() { return nullptr; }
};

class Memory;

/// A way of moving data between the devices of a mesh.
class Collectives {
public:
  virtual ~Collectives() = default;
  /// Operands and results of what is prepared from now on may be in `memory`,
  /// which other processes may see.
  virtual void useMemory(const Memory & /*memory*/) {}
  /// InvalidArgument: element type or shapes that the kind does not support.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) = 0;

  /// As many, which are started one directly after the other, in this order,
  /// and go on in any order: a backend may start them together. By default they
  /// are prepared one by one.
  [[nodiscard]] virtual absl::StatusOr<
      std::vector<std::unique_ptr<PreparedCollective>>>
  prepareTogether(const Mesh &mesh, std::vector<CollectiveSpec> specs);
};

/// Collectives between virtual devices of one process: peers' buffers are read
/// directly. Reductions add in the order of the group's tree
/// (ReductionTree.h), in f32 for bf16.
std::unique_ptr<Collectives> createInProcessCollectives();

/// Merges the tensors of an all-reduce that are contiguous on every device,
/// operands as well as results, with less than `alignment` bytes between them.
/// These bytes are padding and are reduced, too.
void joinNeighbours(CollectiveSpec &spec, uint64_t alignment);

/// Bytes that each device sends (design: ring algorithms): all-reduce
/// 2(n-1)/n·S, all-gather (n-1)/n·S_out, reduce-scatter (n-1)/n·S_in,
/// all-to-all (n-1)/n·S_local, permute S_local, of padded sizes summed over the
/// tensors; fractions are rounded up once per collective.
uint64_t wireBytes(const Mesh &mesh, const CollectiveSpec &spec);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_COLLECTIVES_H
