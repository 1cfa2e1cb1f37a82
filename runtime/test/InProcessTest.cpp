//===- InProcessTest.cpp - What collectives in one process access ---------===//

#include "collectives/InProcess.h"
#include "shardc-rt/HostArray.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace shardc::rt;

namespace {

/// A collective over the second axis of six devices, of a tensor whose last
/// dimension has `inner` elements, all with the same values.
class OneCollective {
public:
  OneCollective(CollectiveKind kind, int64_t inner) : inner(inner) {
    const std::vector<int64_t> shard{2, 2, inner}, whole{2, 5, inner};
    CollectiveTensor tensor{DType::F32,      shard, whole, /*dim=*/1,
                            /*splitDim=*/-1, {},    {}};
    switch (kind) {
    case CollectiveKind::AllGather:
      break;
    case CollectiveKind::ReduceScatter:
      std::swap(tensor.inShape, tensor.outShape);
      break;
    case CollectiveKind::AllToAll:
      tensor.inShape = {5, 2, inner};
      tensor.splitDim = 0;
      break;
    case CollectiveKind::AllReduce:
    case CollectiveKind::CollectivePermute:
      tensor.outShape = shard;
      break;
    }
    CollectiveSpec spec{kind, Reduction::Sum, {1}, {1}, {}};
    if (kind == CollectiveKind::CollectivePermute)
      spec.sources = {2, 0, 1};
    sizeOfIn = numElements(tensor.inShape);
    sizeOfOut = numElements(tensor.outShape);
    memory.resize(mesh.numDevices() * (sizeOfIn + sizeOfOut), filler);
    for (int64_t device = 0; device < mesh.numDevices(); ++device) {
      float *in = memory.data() + device * (sizeOfIn + sizeOfOut);
      for (int64_t i = 0; i < sizeOfIn; ++i)
        in[i] = 1 + 0.37f * float(device) + 0.011f * float(i / inner);
      tensor.in.push_back(in);
      tensor.out.push_back(in + sizeOfIn);
    }
    spec.tensors.push_back(tensor);
    auto made = createInProcessCollectives()->prepare(mesh, std::move(spec));
    EXPECT_TRUE(made.ok()) << made.status();
    prepared = *std::move(made);
  }

  void run() {
    for (int64_t task = 0; task < prepared->numTasks(); ++task)
      EXPECT_TRUE(prepared->runTask(task).ok());
  }

  /// The results at places of the last dimension that are the same in all.
  std::vector<float> results() const {
    std::vector<float> found;
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      for (int64_t i = 0; i < sizeOfOut; i += inner)
        for (int64_t at : {int64_t(0), inner - 1})
          found.push_back(
              memory[device * (sizeOfIn + sizeOfOut) + sizeOfIn + i + at]);
    return found;
  }

  static constexpr float filler = -7;
  const Mesh mesh{{{"a", 2}, {"b", 3}}};
  const int64_t inner;
  int64_t sizeOfIn, sizeOfOut;
  std::vector<float> memory;
  std::unique_ptr<PreparedCollective> prepared;
};

constexpr CollectiveKind kinds[] = {
    CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
    CollectiveKind::AllGather, CollectiveKind::AllToAll,
    CollectiveKind::CollectivePermute};

TEST(InProcessTest, FewBytesHaveFewTasksWithTheSameResults) {
  for (CollectiveKind kind : kinds) {
    OneCollective few(kind, 2), many(kind, 3000);
    // Six results of two rows from three devices are 36 pieces, others fewer.
    EXPECT_EQ(few.prepared->numTasks(),
              kind == CollectiveKind::AllGather ? 2 : 1);
    EXPECT_GT(many.prepared->numTasks(), few.prepared->numTasks());
    EXPECT_FALSE(many.prepared->isShort());
    few.run();
    many.run();
    EXPECT_EQ(few.results(), many.results());
  }
}

TEST(InProcessTest, LongPiecesAreMoreTasks) {
  // Two groups of three devices: a piece of 592 bytes for each, or four of 2
  // KiB.
  EXPECT_EQ(OneCollective(CollectiveKind::AllReduce, 37).prepared->numTasks(),
            1);
  EXPECT_EQ(OneCollective(CollectiveKind::AllReduce, 500).prepared->numTasks(),
            8);
}

TEST(InProcessTest, AccessesAreThoseThatAreVisited) {
  for (CollectiveKind kind : kinds)
    for (int64_t inner : {2, 3000}) {
      OneCollective one(kind, inner);
      const int64_t tasks = one.prepared->numTasks();
      for (int64_t task = 0; task < tasks; ++task) {
        OneCollective all(kind, inner), some(kind, inner);
        std::vector<bool> isRead(all.memory.size()), isWritten = isRead;
        const bool known = all.prepared->visitAccesses(
            task, task + 1, [&](const void *data, uint64_t bytes, bool writes) {
              const int64_t first =
                  static_cast<const float *>(data) - all.memory.data();
              for (uint64_t i = 0; i < bytes / sizeof(float); ++i)
                (writes ? isWritten : isRead)[first + i] = true;
            });
        EXPECT_TRUE(known || tasks > 1);
        if (!known)
          continue;
        // What is not read may as well be something else.
        for (size_t i = 0; i < some.memory.size(); ++i)
          if (!isRead[i])
            some.memory[i] = OneCollective::filler;
        EXPECT_TRUE(all.prepared->runTask(task).ok());
        EXPECT_TRUE(some.prepared->runTask(task).ok());
        for (size_t i = 0; i < some.memory.size(); ++i) {
          if (isWritten[i])
            ASSERT_EQ(some.memory[i], all.memory[i]);
          else
            ASSERT_EQ(all.memory[i], one.memory[i]);
        }
      }
    }
}

} // namespace
