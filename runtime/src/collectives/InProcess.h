//===- InProcess.h - Tasks of collectives between devices -------*- C++ -*-===//
//
// Peers' buffers are read in place. Work is cut into tasks by shape alone, and
// every element is reduced in the order of its group's tree, so that the bits
// do not depend on the number of workers. A result that devices share is
// computed once. Tasks of one collective may run at the same time. Of few bytes
// a list of what is to be done is made when they are prepared; a task does some
// of it, about as much as takes as long as to meet other workers.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_INPROCESS_H
#define SHARDC_RT_SRC_COLLECTIVES_INPROCESS_H

#include "collectives/Collectives.h"
#include "collectives/Reduce.h"

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace shardc::rt {

/// A row-major tensor as [outer, size, inner] around one dimension.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;

  Around(absl::Span<const int64_t> shape, int dim) {
    for (int i = 0; i < static_cast<int>(shape.size()); ++i)
      (i < dim ? outer : i == dim ? size : inner) *= shape[i];
  }
};

/// Shared by all kinds: the spec and its groups, expanded.
class InProcessBase : public PreparedCollective {
public:
  InProcessBase(const Mesh &mesh, CollectiveSpec spec)
      : spec(std::move(spec)), groups(mesh.groups(this->spec.axes)),
        shards(mesh.numShards(this->spec.axes)) {}

  int64_t numTasks() const override {
    return isListed ? (listed() + piecesOfTask - 1) / piecesOfTask
                    : tasks.size();
  }
  uint64_t bytes() const override;

  absl::Status runTask(int64_t task) override {
    if (isListed)
      runList(firstOf(task), firstOf(task + 1));
    else
      run(tasks[task]);
    return absl::OkStatus();
  }

  /// Lists what is to be done if it reads and writes few bytes, in few pieces.
  /// Once, before it runs.
  void listIfFew();

protected:
  struct Task {
    int32_t tensor, group;
    int32_t member;     ///< The member whose result a task serves.
    int64_t begin, end; ///< Elements, rows or bytes, by kind.
  };

  virtual void run(const Task &task) = 0;
  /// Adds what `run` does to the list.
  virtual void list(const Task &task) = 0;
  virtual int64_t listed() const = 0;
  virtual uint64_t bytesReadByList() const = 0;
  virtual void dropList() = 0;
  /// Runs pieces [begin, end) of the list.
  virtual void runList(int64_t begin, int64_t end) = 0;

  /// The first piece of a task of the list.
  int64_t firstOf(int64_t task) const {
    return std::min(task * piecesOfTask, listed());
  }

  /// The block of a task, if all results have `all`: of small ones, too, each
  /// worker has some tasks. If one worker read all, others would wait for the
  /// lines when they write the operands the next time.
  static int64_t blockOf(int64_t all, int64_t least, int64_t most) {
    constexpr int64_t tasks = 16;
    return std::clamp((all / tasks + least - 1) / least * least, least, most);
  }

  /// Tasks for blocks of `block` of [0, size).
  void cutBlocks(size_t tensor, size_t group, int64_t member, int64_t size,
                 int64_t block) {
    for (int64_t begin = 0; begin < size; begin += block)
      tasks.push_back(
          {static_cast<int32_t>(tensor), static_cast<int32_t>(group),
           static_cast<int32_t>(member), begin, std::min(size, begin + block)});
  }

  /// One task per tensor, result and `block` of `extent(tensor, member)`.
  template <typename Extent>
  void cut(int64_t block, Extent extent) {
    for (size_t tensor = 0; tensor < spec.tensors.size(); ++tensor) {
      absl::flat_hash_set<void *> served;
      for (size_t group = 0; group < groups.size(); ++group)
        for (int64_t member = 0; member < shards; ++member)
          if (served.insert(spec.tensors[tensor].out[groups[group][member]])
                  .second)
            cutBlocks(tensor, group, member,
                      extent(spec.tensors[tensor], member), block);
    }
  }

  /// First row and number of rows of member `member` of a dimension.
  std::pair<int64_t, int64_t> rows(int64_t size, int64_t member) const {
    int64_t shard = (size + shards - 1) / shards;
    int64_t start = std::min(member * shard, size);
    return {start, std::min(shard, size - start)};
  }

  CollectiveSpec spec;
  std::vector<std::vector<int64_t>> groups;
  int64_t shards;
  std::vector<Task> tasks;
  bool isListed = false;
  int64_t piecesOfTask = 1; ///< Of the list.
};

/// InvalidArgument: buffers or sources are missing, or booleans are to be
/// summed.
absl::Status checkCollective(const Mesh &mesh, const CollectiveSpec &spec);

/// The collective that `spec`, of that kind, describes. ReduceInProcess.cpp has
/// those that reduce, MoveInProcess.cpp those that do not.
std::unique_ptr<PreparedCollective> prepareAllReduce(const Mesh &mesh,
                                                     CollectiveSpec spec);
std::unique_ptr<PreparedCollective> prepareReduceScatter(const Mesh &mesh,
                                                         CollectiveSpec spec);
std::unique_ptr<PreparedCollective> prepareAllGather(const Mesh &mesh,
                                                     CollectiveSpec spec);
std::unique_ptr<PreparedCollective> prepareAllToAll(const Mesh &mesh,
                                                    CollectiveSpec spec);
std::unique_ptr<PreparedCollective>
prepareCollectivePermute(const Mesh &mesh, CollectiveSpec spec);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_INPROCESS_H
