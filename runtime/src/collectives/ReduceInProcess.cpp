//===- ReduceInProcess.cpp - Sums and maxima over virtual devices ---------===//

#include "collectives/InProcess.h"
#include "shardc-rt/HostArray.h"

#include "absl/algorithm/container.h"

#include <cstring>

using namespace shardc::rt;

namespace {

/// The collectives that reduce elements of a group's operands.
class Reduces : public InProcessBase {
public:
  Reduces(const Mesh &mesh, CollectiveSpec s)
      : InProcessBase(mesh, std::move(s)) {
    for (const CollectiveTensor &tensor : spec.tensors)
      for (const std::vector<int64_t> &group : groups) {
        std::vector<ReduceOperand> &ofGroup = sources.emplace_back();
        for (int64_t device : group)
          ofGroup.push_back({tensor.in[device]});
        if (tensor.isReduced)
          ofGroup.resize(1);
      }
  }

protected:
  /// Elements [offset, offset + elements) of the operands, reduced, at
  /// `result`.
  struct Piece {
    DType dtype;
    absl::Span<const ReduceOperand> sources;
    int64_t offset, elements;
    char *result;
    absl::Span<char *const> copies; ///< Where the same goes, `offset` included.

    int64_t bytes() const { return elements * byteSize(dtype); }
  };
  using Visit = absl::FunctionRef<void(const Piece &)>;

  virtual void forEachPiece(const Task &task, Visit visit) const = 0;

  /// Elements of a task's result.
  int64_t blockOfTask() const {
    int64_t elements = 0;
    for (const CollectiveTensor &tensor : spec.tensors)
      elements += numElements(tensor.inShape);
    return blockOf(elements, maxReduceBlock / 8, maxReduceBlock);
  }

  void run(const Task &task) override {
    forEachPiece(task, [this](const Piece &piece) { reduce(piece); });
  }
  void list(const Task &task) override {
    forEachPiece(task, [this](const Piece &piece) { pieces.push_back(piece); });
  }
  int64_t listed() const override { return pieces.size(); }
  uint64_t bytesReadByList() const override {
    uint64_t sum = 0;
    for (const Piece &piece : pieces)
      sum += piece.sources.size() * piece.bytes();
    return sum;
  }
  void dropList() override { pieces = {}; }
  void runList(int64_t begin, int64_t end) override {
    for (int64_t i = begin; i < end; ++i)
      reduce(pieces[i]);
  }

  bool visitAccesses(int64_t begin, int64_t end,
                     VisitBytes visit) const override {
    auto visitPiece = [&](const Piece &piece) {
      const int64_t start = piece.offset * byteSize(piece.dtype);
      for (const ReduceOperand &source : piece.sources)
        visit(static_cast<const char *>(source.data) + start, piece.bytes(),
              false);
      visit(piece.result, piece.bytes(), true);
      for (char *copy : piece.copies)
        visit(copy + start, piece.bytes(), true);
    };
    if (!isListed && hasShortRuns)
      return false;
    for (int64_t i = firstOf(begin); i < firstOf(end) && isListed; ++i)
      visitPiece(pieces[i]);
    for (int64_t task = begin; task < end && !isListed; ++task)
      forEachPiece(tasks[task], visitPiece);
    return true;
  }

  /// Its tasks have too many pieces to visit each.
  bool hasShortRuns = false;

  /// Those of a task, in the order of the group's members.
  absl::Span<const ReduceOperand> sourcesOf(const Task &task) const {
    return sources[task.tensor * groups.size() + task.group];
  }

private:
  void reduce(const Piece &piece) const {
    reduceBlock(piece.dtype, spec.reduction, piece.sources, piece.offset,
                piece.elements, piece.result);
    for (char *copy : piece.copies)
      std::memcpy(copy + piece.offset * byteSize(piece.dtype), piece.result,
                  piece.bytes());
  }

  /// By tensor, then group.
  std::vector<std::vector<ReduceOperand>> sources;
  std::vector<Piece> pieces;
};

/// Each block is reduced once and written to every result.
class AllReduce : public Reduces {
public:
  AllReduce(const Mesh &mesh, CollectiveSpec s) : Reduces(mesh, std::move(s)) {
    results.resize(spec.tensors.size() * groups.size());
    for (size_t i = 0; i < spec.tensors.size(); ++i) {
      const CollectiveTensor &tensor = spec.tensors[i];
      absl::flat_hash_set<void *> served;
      for (size_t group = 0; group < groups.size(); ++group) {
        // A value in its place needs no copy.
        if (tensor.isReduced || groups[group].size() == 1)
          served.insert(const_cast<void *>(tensor.in[groups[group][0]]));
        std::vector<char *> &ofGroup = results[i * groups.size() + group];
        for (int64_t device : groups[group])
          if (served.insert(tensor.out[device]).second)
            ofGroup.push_back(static_cast<char *>(tensor.out[device]));
        if (!ofGroup.empty())
          cutBlocks(i, group, /*member=*/0, numElements(tensor.inShape),
                    blockOfTask());
      }
    }
  }

private:
  void forEachPiece(const Task &task, Visit visit) const override {
    const DType dtype = spec.tensors[task.tensor].dtype;
    absl::Span<char *const> all =
        results[task.tensor * groups.size() + task.group];
    visit({dtype, sourcesOf(task), task.begin, task.end - task.begin,
           all[0] + task.begin * byteSize(dtype), all.subspan(1)});
  }

  /// By tensor, then group.
  std::vector<std::vector<char *>> results;
};

/// A task reduces a run of one member's result.
class ReduceScatter : public Reduces {
public:
  ReduceScatter(const Mesh &mesh, CollectiveSpec s)
      : Reduces(mesh, std::move(s)) {
    // The elements of a member's result, row by row of the outer dimensions.
    cut(blockOfTask(), [this](const CollectiveTensor &tensor, int64_t member) {
      Around in(tensor.inShape, tensor.dim);
      hasShortRuns |= in.outer > 1;
      return in.outer * rows(in.size, member).second * in.inner;
    });
  }

private:
  void forEachPiece(const Task &task, Visit visit) const override {
    const CollectiveTensor &tensor = spec.tensors[task.tensor];
    Around in(tensor.inShape, tensor.dim), out(tensor.outShape, tensor.dim);
    auto [start, count] = rows(in.size, task.member);
    int64_t runLength = count * in.inner; // contiguous elements per outer row
    char *result =
        static_cast<char *>(tensor.out[groups[task.group][task.member]]);
    for (int64_t element = task.begin; element < task.end;) {
      int64_t outer = element / runLength, within = element % runLength;
      int64_t length = std::min(runLength - within, task.end - element);
      visit({tensor.dtype,
             sourcesOf(task),
             (outer * in.size + start) * in.inner + within,
             length,
             result + (outer * out.size * out.inner + within) *
                          byteSize(tensor.dtype),
             {}});
      element += length;
    }
  }
};

} // namespace

std::unique_ptr<PreparedCollective>
shardc::rt::prepareAllReduce(const Mesh &mesh, CollectiveSpec spec) {
  auto prepared = std::make_unique<AllReduce>(mesh, std::move(spec));
  prepared->listIfFew();
  return prepared;
}

std::unique_ptr<PreparedCollective>
shardc::rt::prepareReduceScatter(const Mesh &mesh, CollectiveSpec spec) {
  auto prepared = std::make_unique<ReduceScatter>(mesh, std::move(spec));
  prepared->listIfFew();
  return prepared;
}
