//===- ReductionTreeTest.cpp - One order of reductions everywhere ---------===//
//
// Reductions over devices have the bits of a tree that is written down here
// once more, for any number of processes; and a process sends one operand for
// all of its devices that are a node.
//
//===----------------------------------------------------------------------===//

#include "Sanitized.h"
#include "ThreadRanks.h"

#include "base/Convert.h"
#include "base/ReductionTree.h"
#include "collectives/BetweenProcesses.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <cstring>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// The tree over [first, last) as text: leaves by number, nodes in brackets.
std::string describe(int64_t first, int64_t last) {
  if (last - first == 1)
    return absl::StrCat(first);
  int64_t middle = first + leavesOfLeft(last - first);
  return absl::StrCat("(", describe(first, middle), " ", describe(middle, last),
                      ")");
}

/// The sum of values[first], values[first + 1], ... by the tree that has been
/// described above.
float sumOf(const std::vector<float> &values, size_t first, size_t last) {
  if (last - first == 1)
    return values[first];
  size_t left = 1;
  while (first + 2 * left < last)
    left *= 2;
  return sumOf(values, first, first + left) + sumOf(values, first + left, last);
}

/// Values whose sums depend on the order.
std::vector<float> valuesOf(int64_t device, int64_t elements) {
  uint32_t random = device + 1;
  std::vector<float> values(elements);
  for (float &value : values) {
    // A linear congruential generator, whose upper bits are the better ones.
    random = random * 1664525 + 1013904223;
    value = std::ldexp(float(int32_t(random)), random % 997 % 40);
  }
  return values;
}

/// The nodes of processes, as "first+leaves".
std::string nodesOf(const std::vector<int> &processes) {
  std::string text;
  for (TreeNode node :
       nodesOfOneOwner({0, static_cast<int64_t>(processes.size())},
                       [&](int64_t leaf) { return processes[leaf]; }))
    absl::StrAppend(&text, text.empty() ? "" : " ", node.first, "+",
                    node.leaves);
  return text;
}

/// What a reduction of `elements` over the axis `axis` of a mesh gives and
/// sends in each of `size` processes.
struct Case {
  Mesh mesh;
  int axis;
  CollectiveKind kind;
  DType dtype;
  int64_t elements;
};

uint64_t checkBits(const Case &test, int size) {
  const int64_t devices = test.mesh.numDevices();
  const int64_t shards = test.mesh.numShards({test.axis});
  const bool isScatter = test.kind == CollectiveKind::ReduceScatter;
  const int64_t resultElements =
      isScatter ? test.elements / shards : test.elements;
  const bool isHalf = test.dtype == DType::BF16;
  uint64_t sent = 0;
  std::mutex mutex;
  runRanks(size, [&](ThreadTransport &transport) {
    DeviceRange own =
        devicesOfProcess(devices, transport.rank(), transport.size());
    std::vector<std::vector<float>> in(devices), out(devices);
    std::vector<std::vector<uint16_t>> halfIn(devices), halfOut(devices);
    CollectiveTensor tensor{
        test.dtype, {test.elements}, {resultElements}, 0, -1, {}, {}};
    tensor.in.resize(devices);
    tensor.out.resize(devices);
    for (int64_t device = 0; device < devices; ++device) {
      in[device] = valuesOf(device, test.elements);
      out[device].resize(resultElements);
      halfOut[device].resize(resultElements);
      for (float &value : in[device]) {
        halfIn[device].push_back(toBF16(value));
        if (isHalf)
          value = fromBF16(halfIn[device].back());
      }
      if (!own.contains(device))
        continue;
      tensor.in[device] = isHalf ? static_cast<void *>(halfIn[device].data())
                                 : in[device].data();
      tensor.out[device] = isHalf ? static_cast<void *>(halfOut[device].data())
                                  : out[device].data();
    }
    auto collectives = size == 1 ? createInProcessCollectives()
                                 : createCollectivesBetweenProcesses(transport);
    auto prepared = collectives->prepare(
        test.mesh, {test.kind, Reduction::Sum, {test.axis}, {}, {tensor}});
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    transport.bytesSent = 0;
    runTasks((*prepared)->start());
    runTasks(prepared->get());
    for (const std::vector<int64_t> &group : test.mesh.groups({test.axis}))
      for (size_t member = 0; member < group.size(); ++member) {
        int64_t device = group[member];
        const int64_t begin = isScatter ? member * resultElements : 0;
        std::vector<float> values(group.size());
        for (int64_t i = 0; own.contains(device) && i < resultElements; ++i) {
          for (size_t other = 0; other < group.size(); ++other)
            values[other] = in[group[other]][begin + i];
          float expected = sumOf(values, 0, values.size());
          if (isHalf)
            ASSERT_EQ(halfOut[device][i], toBF16(expected));
          else
            ASSERT_EQ(out[device][i], expected)
                << test.mesh.toString() << " over " << test.axis << " in "
                << size << " processes: device " << device;
        }
      }
    std::lock_guard<std::mutex> lock(mutex);
    sent = std::max(sent, transport.bytesSent);
  });
  return sent;
}

} // namespace

TEST(ReductionTreeTest, LeftChildrenHaveThePowersOfTwo) {
  EXPECT_EQ(describe(0, 2), "(0 1)");
  EXPECT_EQ(describe(0, 3), "((0 1) 2)");
  EXPECT_EQ(describe(0, 4), "((0 1) (2 3))");
  EXPECT_EQ(describe(0, 6), "(((0 1) (2 3)) (4 5))");
  EXPECT_EQ(describe(0, 7), "(((0 1) (2 3)) ((4 5) 6))");
  EXPECT_EQ(describe(0, 9), "((((0 1) (2 3)) ((4 5) (6 7))) 8)");
}

TEST(ReductionTreeTest, NodesOfOneOwnerAreTheLargest) {
  EXPECT_EQ(nodesOf({0}), "0+1");
  EXPECT_EQ(nodesOf({0, 0, 0, 0, 0}), "0+5");
  EXPECT_EQ(nodesOf({0, 0, 1, 1}), "0+2 2+2");
  EXPECT_EQ(nodesOf({0, 0, 0, 1, 1, 1}), "0+2 2+1 3+1 4+2");
  EXPECT_EQ(nodesOf({0, 1, 0, 1}), "0+1 1+1 2+1 3+1");
  // Not consecutive: of the same owner again.
  EXPECT_EQ(nodesOf({0, 0, 1, 1, 0, 0, 0}), "0+2 2+2 4+3");
}

TEST(ReductionTreeTest, AnyNumberOfProcessesHasTheSameBits) {
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter})
    for (DType dtype : {DType::F32, DType::BF16})
      // In one message, and in parts.
      for (int64_t elements : {840, 13440})
        for (int size : {1, 2, 3, 4}) {
          if (isSanitized && (dtype == DType::BF16) != (elements == 840))
            continue;
          for (int64_t devices : {4, 5, 6, 7, 8, 12})
            checkBits({Mesh({{"d", devices}}), 0, kind, dtype, elements}, size);
          for (int axis : {0, 1})
            for (auto [outer, inner] :
                 {std::pair<int64_t, int64_t>(4, 2), {2, 4}, {3, 2}, {2, 5}})
              checkBits({Mesh({{"o", outer}, {"i", inner}}), axis, kind, dtype,
                         elements},
                        size);
        }
}

// Two processes with one or four devices each send the same: half of the
// operands, and half of the sums.
TEST(ReductionTreeTest, AProcessSendsOneOperandForItsDevices) {
  constexpr int64_t elements = 64 << 10;
  for (int64_t devices : {2, 4, 8})
    EXPECT_EQ(checkBits({Mesh({{"d", devices}}), 0, CollectiveKind::AllReduce,
                         DType::F32, elements},
                        2),
              4 * elements);
  // {0, 1} and {2}; {3} and {4, 5}.
  EXPECT_EQ(checkBits({Mesh({{"d", 6}}), 0, CollectiveKind::AllReduce,
                       DType::F32, elements},
                      2),
            6 * elements);
  // bf16 is rounded once.
  EXPECT_EQ(checkBits({Mesh({{"d", 4}}), 0, CollectiveKind::AllReduce,
                       DType::BF16, elements},
                      2),
            3 * elements);
}
