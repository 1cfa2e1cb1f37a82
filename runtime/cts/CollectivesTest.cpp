//===- CollectivesTest.cpp - Conformance of every backend's collectives ---===//
//
// Written against the interface `Collectives`, parameterised over meshes; each
// case runs over every subset and order of axes, every element type and sizes
// of 0, 1, odd, even and ragged, and compares with values derived element by
// element from the definition. Data are small integers: sums are exact in every
// type and order.
//
//===----------------------------------------------------------------------===//

#include "NcclGpus.h"
#include "ProcessesOfMpi.h"
#include "VirtualGpu.h"

#include "collectives/Collectives.h"
#include "shardc-rt/HostArray.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

/// Null: not on this mesh.
using Backend = std::unique_ptr<Collectives> (*)(const Mesh &);

std::unique_ptr<Collectives> createInProcess(const Mesh &) {
  return createInProcessCollectives();
}

/// A value as stored in `dtype`, and back.
double load(DType dtype, const void *data, int64_t i) {
  switch (dtype) {
  case DType::F32:
    return static_cast<const float *>(data)[i];
  case DType::F64:
    return static_cast<const double *>(data)[i];
  case DType::I32:
    return static_cast<const int32_t *>(data)[i];
  case DType::I64:
    return static_cast<const int64_t *>(data)[i];
  case DType::Bool:
    return static_cast<const uint8_t *>(data)[i];
  case DType::BF16: {
    uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[i]) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  }
  return 0;
}

void store(DType dtype, void *data, int64_t i, double value) {
  switch (dtype) {
  case DType::F32:
    static_cast<float *>(data)[i] = static_cast<float>(value);
    break;
  case DType::F64:
    static_cast<double *>(data)[i] = value;
    break;
  case DType::I32:
    static_cast<int32_t *>(data)[i] = static_cast<int32_t>(value);
    break;
  case DType::I64:
    static_cast<int64_t *>(data)[i] = static_cast<int64_t>(value);
    break;
  case DType::Bool:
    static_cast<uint8_t *>(data)[i] = value != 0;
    break;
  case DType::BF16: {
    float narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    static_cast<uint16_t *>(data)[i] = static_cast<uint16_t>(bits >> 16);
    break;
  }
  }
}

/// The operand's element `i` on `device`.
double valueAt(DType dtype, int64_t device, int64_t i) {
  int64_t value = (device * 5 + i * 3) % 7 - 3;
  return dtype == DType::Bool ? (value > 1) : static_cast<double>(value);
}

/// Shape [2, size, 3] around dimension 1, the tensors of one case.
std::vector<int64_t> around(int64_t size) { return {2, size, 3}; }

int64_t linear(const std::vector<int64_t> &shape, int64_t a, int64_t b,
               int64_t c) {
  return (a * shape[1] + b) * shape[2] + c;
}

class CollectivesTest
    : public testing::TestWithParam<std::tuple<Backend, std::vector<int64_t>>> {
protected:
  CollectivesTest() {
    std::vector<Mesh::Axis> axes;
    for (int64_t size : std::get<1>(GetParam()))
      axes.push_back({absl::StrCat("a", axes.size()), size});
    mesh = Mesh(axes);
    backend = std::get<0>(GetParam())(mesh);
  }

  void SetUp() override {
    if (!backend)
      GTEST_SKIP() << "not on " << mesh.toString();
  }

  /// Every non-empty subset of the axes, in every order.
  std::vector<std::vector<int>> axisLists() const {
    std::vector<std::vector<int>> lists;
    int count = mesh.axes().size();
    for (int bits = 1; bits < (1 << count); ++bits) {
      std::vector<int> axes;
      for (int axis = 0; axis < count; ++axis)
        if (bits >> axis & 1)
          axes.push_back(axis);
      do
        lists.push_back(axes);
      while (std::next_permutation(axes.begin(), axes.end()));
    }
    return lists;
  }

  int64_t ceilDiv(int64_t size, const std::vector<int> &axes) const {
    int64_t shards = mesh.numShards(axes);
    return (size + shards - 1) / shards;
  }

  /// Fills operands, runs every task (last first: they are
  /// independent), and leaves results in `results`.
  void run(CollectiveSpec spec, DType dtype, std::vector<int64_t> inShape,
           std::vector<int64_t> outShape, int dim, int splitDim = -1) {
    int64_t devices = mesh.numDevices();
    CollectiveTensor tensor;
    tensor.dtype = dtype;
    tensor.inShape = inShape;
    tensor.outShape = outShape;
    tensor.dim = dim;
    tensor.splitDim = splitDim;
    operands.clear();
    results.clear();
    for (int64_t device = 0; device < devices; ++device) {
      operands.emplace_back(dtype, inShape);
      results.emplace_back(dtype, outShape);
      for (int64_t i = 0; i < numElements(inShape); ++i)
        store(dtype, operands.back().data.data(), i, valueAt(dtype, device, i));
    }
    for (int64_t device = 0; device < devices; ++device) {
      tensor.in.push_back(operands[device].data.data());
      tensor.out.push_back(results[device].data.data());
    }
    spec.tensors.push_back(std::move(tensor));
    auto prepared = backend->prepare(mesh, std::move(spec));
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (int64_t task = (*prepared)->numTasks(); task-- > 0;)
      ASSERT_TRUE((*prepared)->runTask(task).ok());
  }

  double operand(int64_t device, int64_t i) const {
    return load(operands[device].dtype, operands[device].data.data(), i);
  }
  double result(int64_t device, int64_t i) const {
    return load(results[device].dtype, results[device].data.data(), i);
  }

  /// The members of the group of `device`, in order.
  std::vector<int64_t> groupOf(int64_t device,
                               const std::vector<int> &axes) const {
    std::vector<int64_t> members(mesh.numShards(axes), -1);
    for (int64_t other = 0; other < mesh.numDevices(); ++other) {
      bool same = true;
      for (int axis = 0; axis < int(mesh.axes().size()); ++axis)
        same &= std::find(axes.begin(), axes.end(), axis) != axes.end() ||
                mesh.coordinate(other, axis) == mesh.coordinate(device, axis);
      if (same)
        members[mesh.index(other, axes)] = other;
    }
    return members;
  }

  double reduced(const std::vector<int64_t> &members, Reduction reduction,
                 int64_t i) const {
    double value = operand(members[0], i);
    for (size_t m = 1; m < members.size(); ++m)
      value = reduction == Reduction::Sum
                  ? value + operand(members[m], i)
                  : std::max(value, operand(members[m], i));
    return value;
  }

  Mesh mesh;
  std::unique_ptr<Collectives> backend;
  std::vector<HostArray> operands, results;
};

constexpr DType allTypes[] = {DType::F32, DType::BF16, DType::F64,
                              DType::I32, DType::I64,  DType::Bool};
constexpr int64_t sizes[] = {0, 1, 2, 5, 12, 1500};

TEST_P(CollectivesTest, AllReduce) {
  for (const std::vector<int> &axes : axisLists())
    for (DType dtype : allTypes)
      for (Reduction reduction : {Reduction::Sum, Reduction::Max})
        for (int64_t size : sizes) {
          if (dtype == DType::Bool && reduction == Reduction::Sum)
            continue;
          std::vector<int64_t> shape = around(size);
          run({CollectiveKind::AllReduce, reduction, axes, {}, {}}, dtype,
              shape, shape, 0);
          for (int64_t device = 0; device < mesh.numDevices(); ++device) {
            std::vector<int64_t> members = groupOf(device, axes);
            for (int64_t i = 0; i < numElements(shape); ++i)
              ASSERT_EQ(result(device, i), reduced(members, reduction, i))
                  << toString(dtype) << " size " << size << " element " << i;
          }
        }
}

TEST_P(CollectivesTest, AllGather) {
  // Tens of kilobytes and more are several tasks.
  std::vector<int64_t> all(std::begin(sizes), std::end(sizes));
  all.push_back(6001);
  for (const std::vector<int> &axes : axisLists())
    for (DType dtype : {DType::F32, DType::BF16, DType::I64, DType::Bool})
      for (int64_t size : all) {
        int64_t shard = ceilDiv(size, axes);
        std::vector<int64_t> in = around(shard), out = around(size);
        run({CollectiveKind::AllGather, Reduction::Sum, axes, {}, {}}, dtype,
            in, out, /*dim=*/1);
        for (int64_t device = 0; device < mesh.numDevices(); ++device) {
          std::vector<int64_t> members = groupOf(device, axes);
          for (int64_t a = 0; a < 2; ++a)
            for (int64_t row = 0; row < size; ++row)
              for (int64_t c = 0; c < 3; ++c)
                ASSERT_EQ(result(device, linear(out, a, row, c)),
                          operand(members[row / shard],
                                  linear(in, a, row % shard, c)))
                    << "size " << size << " row " << row;
        }
      }
}

TEST_P(CollectivesTest, ReduceScatter) {
  for (const std::vector<int> &axes : axisLists())
    for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I32})
      for (Reduction reduction : {Reduction::Sum, Reduction::Max})
        for (int64_t size : sizes) {
          int64_t shard = ceilDiv(size, axes);
          std::vector<int64_t> in = around(size), out = around(shard);
          run({CollectiveKind::ReduceScatter, reduction, axes, {}, {}}, dtype,
              in, out, /*dim=*/1);
          for (int64_t device = 0; device < mesh.numDevices(); ++device) {
            std::vector<int64_t> members = groupOf(device, axes);
            int64_t start = mesh.index(device, axes) * shard;
            for (int64_t a = 0; a < 2; ++a)
              for (int64_t row = 0; row < shard && start + row < size; ++row)
                for (int64_t c = 0; c < 3; ++c)
                  ASSERT_EQ(result(device, linear(out, a, row, c)),
                            reduced(members, reduction,
                                    linear(in, a, start + row, c)))
                      << "size " << size << " row " << start + row;
          }
        }
}

/// Several tensors of different types and alignments at once: rows of vectors
/// and of elements. On one mesh there is more than threads do in one turn.
TEST_P(CollectivesTest, SeveralTensors) {
  std::vector<int> axes;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
    axes.push_back(axis);
  const int64_t devices = mesh.numDevices();
  struct Case {
    DType dtype;
    std::vector<int64_t> shape; ///< Whole.
    int dim;
  };
  const Case cases[] = {{DType::F32, {devices == 3 ? 200 : 8, 24000}, 1},
                        {DType::F32, {24 * devices, 128}, 0},
                        {DType::BF16, {3, 1001}, 1},
                        {DType::BF16, {16 * devices, 8}, 0},
                        {DType::I64, {7}, 0},
                        {DType::F32, {0, 5}, 0}};
  for (CollectiveKind kind :
       {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
        CollectiveKind::AllReduce}) {
    CollectiveSpec spec{kind, Reduction::Sum, axes, {}, {}};
    std::vector<std::vector<HostArray>> ins, outs; // By tensor and device.
    for (const Case &one : cases) {
      std::vector<int64_t> shard = one.shape;
      shard[one.dim] = ceilDiv(shard[one.dim], axes);
      const auto &inShape =
          kind == CollectiveKind::AllGather ? shard : one.shape;
      const auto &outShape =
          kind == CollectiveKind::ReduceScatter ? shard : one.shape;
      CollectiveTensor tensor{one.dtype, inShape, outShape, one.dim,
                              -1,        {},      {}};
      ins.emplace_back();
      outs.emplace_back();
      for (int64_t device = 0; device < devices; ++device) {
        ins.back().emplace_back(one.dtype, inShape);
        outs.back().emplace_back(one.dtype, outShape);
        for (int64_t i = 0; i < numElements(inShape); ++i)
          store(one.dtype, ins.back().back().data.data(), i,
                valueAt(one.dtype, device, i));
      }
      for (int64_t device = 0; device < devices; ++device) {
        tensor.in.push_back(ins.back()[device].data.data());
        tensor.out.push_back(outs.back()[device].data.data());
      }
      spec.tensors.push_back(std::move(tensor));
    }
    auto prepared = backend->prepare(mesh, spec);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (int64_t task = 0; task < (*prepared)->numTasks(); ++task)
      ASSERT_TRUE((*prepared)->runTask(task).ok());
    for (size_t t = 0; t < std::size(cases); ++t) {
      const auto &[dtype, shape, dim] = cases[t];
      const int64_t shard = ceilDiv(shape[dim], axes);
      int64_t outer = 1, inner = 1;
      for (int d = 0; d < static_cast<int>(shape.size()); ++d)
        if (d != dim)
          (d < dim ? outer : inner) *= shape[d];
      // Element (a, row, c) of the whole, and of member `member`'s shard.
      for (int64_t a = 0; a < outer; ++a)
        for (int64_t row = 0; row < shape[dim]; ++row)
          for (int64_t c = 0; c < inner; ++c) {
            const int64_t member = row / shard;
            const int64_t whole = (a * shape[dim] + row) * inner + c;
            const int64_t part = (a * shard + row % shard) * inner + c;
            double expected = 0;
            for (int64_t device = 0; device < devices; ++device)
              expected += valueAt(dtype, device, whole);
            if (kind == CollectiveKind::AllGather)
              expected = valueAt(dtype, member, part);
            for (int64_t device = 0; device < devices; ++device) {
              if (kind == CollectiveKind::ReduceScatter && device != member)
                continue;
              const int64_t at =
                  kind == CollectiveKind::ReduceScatter ? part : whole;
              ASSERT_EQ(load(dtype, outs[t][device].data.data(), at), expected)
                  << toString(kind) << " tensor " << t << " row " << row;
            }
          }
    }
  }
}

TEST_P(CollectivesTest, AllToAll) {
  for (const std::vector<int> &axes : axisLists())
    for (int64_t split : {0, 1, 5, 12})
      for (int64_t concat : {0, 1, 7, 12})
        for (bool concatFirst : {false, true}) {
          int64_t splitShard = ceilDiv(split, axes);
          int64_t concatShard = ceilDiv(concat, axes);
          // Dimensions 0 and 1, each in both parts.
          std::vector<int64_t> in = {split, concatShard, 3};
          std::vector<int64_t> out = {splitShard, concat, 3};
          int splitDim = 0, dim = 1;
          if (concatFirst) {
            in = {concatShard, split, 3};
            out = {concat, splitShard, 3};
            std::swap(splitDim, dim);
          }
          run({CollectiveKind::AllToAll, Reduction::Sum, axes, {}, {}},
              DType::F32, in, out, dim, splitDim);
          for (int64_t device = 0; device < mesh.numDevices(); ++device) {
            std::vector<int64_t> members = groupOf(device, axes);
            int64_t start = mesh.index(device, axes) * splitShard;
            for (int64_t s = 0; s < splitShard && start + s < split; ++s)
              for (int64_t k = 0; k < concat; ++k)
                for (int64_t c = 0; c < 3; ++c) {
                  int64_t from = start + s, within = k % concatShard;
                  int64_t at =
                      concatFirst ? linear(out, k, s, c) : linear(out, s, k, c);
                  int64_t source = concatFirst ? linear(in, within, from, c)
                                               : linear(in, from, within, c);
                  ASSERT_EQ(result(device, at),
                            operand(members[k / concatShard], source));
                }
          }
        }
}

TEST_P(CollectivesTest, CollectivePermute) {
  for (const std::vector<int> &axes : axisLists()) {
    std::vector<int> target(axes);
    std::sort(target.begin(), target.end());
    do
      for (int64_t size : sizes) {
        std::vector<int64_t> shape = around(size);
        run({CollectiveKind::CollectivePermute,
             Reduction::Sum,
             axes,
             target,
             {}},
            DType::I32, shape, shape, 0);
        for (int64_t device = 0; device < mesh.numDevices(); ++device) {
          int64_t source = groupOf(device, axes)[mesh.index(device, target)];
          for (int64_t i = 0; i < numElements(shape); ++i)
            ASSERT_EQ(result(device, i), operand(source, i));
        }
      }
    while (std::next_permutation(target.begin(), target.end()));
  }
}

TEST_P(CollectivesTest, CollectivePermuteFromSources) {
  for (const std::vector<int> &axes : axisLists()) {
    std::vector<int> target(axes.rbegin(), axes.rend());
    int members = mesh.numShards(axes);
    // Rings both ways, and all to the opposite one.
    for (int kind = 0; kind < 3; ++kind) {
      std::vector<int> sources(members);
      for (int i = 0; i < members; ++i)
        sources[i] = kind == 0   ? (i + members - 1) % members
                     : kind == 1 ? (i + 1) % members
                                 : members - 1 - i;
      for (int64_t size : sizes) {
        std::vector<int64_t> shape = around(size);
        CollectiveSpec spec{CollectiveKind::CollectivePermute,
                            Reduction::Sum,
                            axes,
                            target,
                            {}};
        spec.sources = sources;
        run(spec, DType::I32, shape, shape, 0);
        for (int64_t device = 0; device < mesh.numDevices(); ++device) {
          int64_t source =
              groupOf(device, axes)[sources[mesh.index(device, target)]];
          for (int64_t i = 0; i < numElements(shape); ++i)
            ASSERT_EQ(result(device, i), operand(source, i));
        }
      }
    }
  }
}

TEST_P(CollectivesTest, AllReduceInPlace) {
  std::vector<int> axes;
  for (size_t axis = 0; axis < mesh.axes().size(); ++axis)
    axes.push_back(axis);
  std::vector<HostArray> arrays;
  CollectiveSpec spec{CollectiveKind::AllReduce, Reduction::Sum, axes, {}, {}};
  CollectiveTensor tensor{DType::F32, {9000}, {9000}, 0, -1, {}, {}};
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    arrays.emplace_back(DType::F32, std::vector<int64_t>{9000});
    for (int64_t i = 0; i < 9000; ++i)
      arrays.back().values<float>()[i] = float((device + i) % 11);
  }
  std::vector<float> expected(9000);
  for (int64_t i = 0; i < 9000; ++i)
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      expected[i] += float((device + i) % 11);
  for (HostArray &array : arrays) {
    tensor.in.push_back(array.data.data());
    tensor.out.push_back(array.data.data());
  }
  spec.tensors.push_back(tensor);
  auto prepared = backend->prepare(mesh, spec);
  ASSERT_TRUE(prepared.ok());
  for (int64_t task = 0; task < (*prepared)->numTasks(); ++task)
    ASSERT_TRUE((*prepared)->runTask(task).ok());
  for (HostArray &array : arrays)
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                           array.values<float>().begin()));
}

TEST_P(CollectivesTest, SumsOfBooleansAreRefused) {
  CollectiveSpec spec{CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {}};
  CollectiveTensor tensor{DType::Bool, {1}, {1}, 0, -1, {}, {}};
  uint8_t byte = 0;
  tensor.in.assign(mesh.numDevices(), &byte);
  tensor.out.assign(mesh.numDevices(), &byte);
  spec.tensors.push_back(tensor);
  EXPECT_EQ(backend->prepare(mesh, spec).status().code(),
            absl::StatusCode::kInvalidArgument);
}

const auto meshes = testing::Values(
    std::vector<int64_t>{1}, std::vector<int64_t>{2}, std::vector<int64_t>{3},
    std::vector<int64_t>{4}, std::vector<int64_t>{6}, std::vector<int64_t>{8},
    std::vector<int64_t>{2, 3}, std::vector<int64_t>{4, 2},
    std::vector<int64_t>{2, 2, 2});

INSTANTIATE_TEST_SUITE_P(InProcess, CollectivesTest,
                         testing::Combine(testing::Values(&createInProcess),
                                          meshes));
INSTANTIATE_TEST_SUITE_P(
    VirtualGpu, CollectivesTest,
    testing::Combine(testing::Values(&test::createVirtualGpuCollectives),
                     meshes));
// 1, 2 and 3 devices in each of 2, 3 and 4 processes, and numbers of devices
// that processes do not divide.
INSTANTIATE_TEST_SUITE_P(
    Mpi, CollectivesTest,
    testing::Combine(
        testing::Values(&test::createMpiCollectives,
                        &test::createSeenMpiCollectives),
        testing::Values(std::vector<int64_t>{2}, std::vector<int64_t>{3},
                        std::vector<int64_t>{4}, std::vector<int64_t>{5},
                        std::vector<int64_t>{6}, std::vector<int64_t>{8},
                        std::vector<int64_t>{9}, std::vector<int64_t>{12},
                        std::vector<int64_t>{2, 2}, std::vector<int64_t>{2, 3},
                        std::vector<int64_t>{3, 2}, std::vector<int64_t>{3, 3},
                        std::vector<int64_t>{4, 2}, std::vector<int64_t>{3, 4},
                        std::vector<int64_t>{2, 2, 2},
                        std::vector<int64_t>{2, 3, 2})));
INSTANTIATE_TEST_SUITE_P(
    Nccl, CollectivesTest,
    testing::Combine(
        testing::Values(&test::createNcclCollectives),
        testing::Values(std::vector<int64_t>{1}, std::vector<int64_t>{2},
                        std::vector<int64_t>{3}, std::vector<int64_t>{4},
                        std::vector<int64_t>{2, 2}, std::vector<int64_t>{2, 3},
                        std::vector<int64_t>{4, 2})));

TEST(WireBytesTest, FollowsTheFormulas) {
  Mesh mesh({{"d", 4}, {"t", 2}});
  auto bytes = [&](CollectiveKind kind, std::vector<int> axes,
                   std::vector<int64_t> in, std::vector<int64_t> out, int dim,
                   int splitDim = -1, std::vector<int> target = {},
                   std::vector<int> sources = {}) {
    CollectiveSpec spec{kind, Reduction::Sum, axes, target, {}};
    spec.sources = sources;
    spec.tensors.push_back({DType::F32, in, out, dim, splitDim, {}, {}});
    return wireBytes(mesh, spec);
  };
  EXPECT_EQ(bytes(CollectiveKind::AllReduce, {0}, {16, 64}, {16, 64}, 0),
            6144u);
  EXPECT_EQ(bytes(CollectiveKind::AllReduce, {0}, {}, {}, 0), 6u);
  EXPECT_EQ(bytes(CollectiveKind::AllGather, {0}, {4, 64}, {16, 64}, 0), 3072u);
  EXPECT_EQ(bytes(CollectiveKind::ReduceScatter, {0}, {16, 64}, {4, 64}, 0),
            3072u);
  // 30 rows over 4: padded to 32.
  EXPECT_EQ(bytes(CollectiveKind::ReduceScatter, {0}, {30, 8}, {8, 8}, 0),
            768u);
  EXPECT_EQ(bytes(CollectiveKind::AllGather, {0}, {8, 8}, {30, 8}, 0), 768u);
  EXPECT_EQ(bytes(CollectiveKind::AllToAll, {1}, {4, 16}, {8, 8}, 0, 1), 128u);
  EXPECT_EQ(bytes(CollectiveKind::CollectivePermute, {0, 1}, {4, 16}, {4, 16},
                  0, -1, {1, 0}),
            256u);
  EXPECT_EQ(bytes(CollectiveKind::CollectivePermute, {0}, {4}, {4}, 0, -1, {0}),
            0u);
  EXPECT_EQ(bytes(CollectiveKind::CollectivePermute, {0}, {4}, {4}, 0, -1, {0},
                  {3, 0, 1, 2}),
            16u);
  EXPECT_EQ(bytes(CollectiveKind::CollectivePermute, {0}, {4}, {4}, 0, -1, {0},
                  {0, 1, 2, 3}),
            0u);
}

} // namespace
