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
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace shardc::rt;

namespace {

/// Null: not on this mesh.
using Backend = std::unique_ptr<Collectives> (*)(const Mesh &);

std::unique_ptr<Collectives> createInProcess(const Mesh &) {
  return createInProcessCollectives();
}

/// The type of C++ whose bits are those of bf16, as it is stored.
struct BF16 {
  BF16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    bits = static_cast<uint16_t>(wide >> 16);
  }
  operator float() const {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  uint16_t bits;
};

/// Calls `use` with the elements of `array`, a pointer to their type.
template <typename Use>
void useElements(HostArray &array, Use use) {
  void *data = array.data.data();
  switch (array.dtype) {
  case DType::F32:
    return use(static_cast<float *>(data));
  case DType::F64:
    return use(static_cast<double *>(data));
  case DType::I32:
    return use(static_cast<int32_t *>(data));
  case DType::I64:
    return use(static_cast<int64_t *>(data));
  case DType::Bool:
    return use(static_cast<uint8_t *>(data));
  case DType::BF16:
    return use(static_cast<BF16 *>(data));
  }
}

/// The elements of a tensor, whatever their type: all are small integers.
using Values = std::vector<float>;

/// What is expected of padding.
constexpr float anything = std::numeric_limits<float>::quiet_NaN();

/// The operand of `device`: small numbers, which repeat.
Values operandOf(DType dtype, int64_t device,
                 const std::vector<int64_t> &shape) {
  float period[7];
  for (int64_t i = 0; i < 7; ++i) {
    int64_t value = (device * 5 + i * 3) % 7 - 3;
    period[i] = dtype == DType::Bool ? (value > 1) : value;
  }
  Values values(numElements(shape));
  for (size_t i = 0; i < values.size(); i += 7)
    std::copy_n(period, std::min<size_t>(7, values.size() - i), &values[i]);
  return values;
}

HostArray toArray(DType dtype, const std::vector<int64_t> &shape,
                  const Values &values) {
  HostArray array(dtype, shape);
  useElements(array, [&](auto *elements) {
    std::copy(values.begin(), values.end(), elements);
  });
  return array;
}

/// Whether the array has the elements expected; says which is the first other.
testing::AssertionResult has(HostArray &array, const Values &expected) {
  testing::AssertionResult result = testing::AssertionSuccess();
  if (expected.size() != static_cast<size_t>(numElements(array.shape)))
    return testing::AssertionFailure() << "expects " << expected.size();
  useElements(array, [&](auto *elements) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const double value = static_cast<double>(elements[i]);
      if (value != expected[i] && !std::isnan(expected[i])) {
        result = testing::AssertionFailure()
                 << "element " << i << " is " << value << " instead of "
                 << expected[i];
        return;
      }
    }
  });
  return result;
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
    std::vector<HostArray> arrays;
    for (int64_t device = 0; device < devices; ++device) {
      operands.push_back(operandOf(dtype, device, inShape));
      arrays.push_back(toArray(dtype, inShape, operands.back()));
      results.emplace_back(dtype, outShape);
    }
    for (int64_t device = 0; device < devices; ++device) {
      tensor.in.push_back(arrays[device].data.data());
      tensor.out.push_back(results[device].data.data());
    }
    spec.tensors.push_back(std::move(tensor));
    auto prepared = backend->prepare(mesh, std::move(spec));
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (int64_t task = (*prepared)->numTasks(); task-- > 0;)
      ASSERT_TRUE((*prepared)->runTask(task).ok());
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

  /// Calls `check` with the members of each group.
  template <typename Check>
  void forEachGroup(const std::vector<int> &axes, Check check) const {
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      if (std::vector<int64_t> members = groupOf(device, axes);
          members[0] == device)
        check(members);
  }

  Values reduced(const std::vector<int64_t> &members,
                 Reduction reduction) const {
    Values values = operands[members[0]];
    for (size_t m = 1; m < members.size(); ++m) {
      const Values &other = operands[members[m]];
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = reduction == Reduction::Sum ? values[i] + other[i]
                                                : std::max(values[i], other[i]);
    }
    return values;
  }

  Mesh mesh;
  std::unique_ptr<Collectives> backend;
  std::vector<Values> operands;   ///< By device, of the last run.
  std::vector<HostArray> results; ///< By device.
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
          forEachGroup(axes, [&](const std::vector<int64_t> &members) {
            Values expected = reduced(members, reduction);
            for (int64_t device : members)
              ASSERT_TRUE(has(results[device], expected))
                  << toString(dtype) << " size " << size;
          });
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
        forEachGroup(axes, [&](const std::vector<int64_t> &members) {
          Values expected(numElements(out));
          for (int64_t a = 0; a < 2; ++a)
            for (int64_t row = 0; row < size; ++row)
              for (int64_t c = 0; c < 3; ++c)
                expected[linear(out, a, row, c)] =
                    operands[members[row / shard]]
                            [linear(in, a, row % shard, c)];
          for (int64_t device : members)
            ASSERT_TRUE(has(results[device], expected)) << "size " << size;
        });
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
          forEachGroup(axes, [&](const std::vector<int64_t> &members) {
            Values whole = reduced(members, reduction);
            for (int64_t device : members) {
              int64_t start = mesh.index(device, axes) * shard;
              Values expected(numElements(out), anything);
              for (int64_t a = 0; a < 2; ++a)
                for (int64_t row = 0; row < shard && start + row < size; ++row)
                  for (int64_t c = 0; c < 3; ++c)
                    expected[linear(out, a, row, c)] =
                        whole[linear(in, a, start + row, c)];
              ASSERT_TRUE(has(results[device], expected)) << "size " << size;
            }
          });
        }
}

/// Several tensors of different types and alignments at once: rows of vectors
/// and of elements. On one mesh there is more than threads of a GPU do in one
/// turn.
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
  const bool isLarge =
      std::get<0>(GetParam()) == &test::createVirtualGpuCollectives &&
      devices == 3;
  const Case cases[] = {{DType::F32, {isLarge ? 200 : 8, 24000}, 1},
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
        ins.back().push_back(
            toArray(one.dtype, inShape, operandOf(one.dtype, device, inShape)));
        outs.back().emplace_back(one.dtype, outShape);
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
      std::vector<int64_t> shardShape = shape;
      shardShape[dim] = shard;
      // Calls `use` with the places of a row of `device` in the whole and in
      // its shard.
      auto forEachRow = [&](int64_t device, auto use) {
        const int64_t first = device * shard;
        for (int64_t a = 0; a < outer; ++a)
          for (int64_t row = 0; row < shard && first + row < shape[dim]; ++row)
            use((a * shape[dim] + first + row) * inner,
                (a * shard + row) * inner);
      };
      Values expected(numElements(shape));
      for (int64_t device = 0; device < devices; ++device)
        if (kind == CollectiveKind::AllGather) {
          Values part = operandOf(dtype, device, shardShape);
          forEachRow(device, [&](int64_t whole, int64_t ofShard) {
            std::copy_n(&part[ofShard], inner, &expected[whole]);
          });
        } else {
          Values summand = operandOf(dtype, device, shape);
          for (size_t i = 0; i < expected.size(); ++i)
            expected[i] += summand[i];
        }
      for (int64_t device = 0; device < devices; ++device) {
        Values part;
        if (kind == CollectiveKind::ReduceScatter) {
          part.assign(numElements(shardShape), anything);
          forEachRow(device, [&](int64_t whole, int64_t ofShard) {
            std::copy_n(&expected[whole], inner, &part[ofShard]);
          });
        }
        ASSERT_TRUE(has(outs[t][device], kind == CollectiveKind::ReduceScatter
                                             ? part
                                             : expected))
            << toString(kind) << " tensor " << t << " device " << device;
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
            Values expected(numElements(out), anything);
            for (int64_t s = 0; s < splitShard && start + s < split; ++s)
              for (int64_t k = 0; k < concat; ++k)
                for (int64_t c = 0; c < 3; ++c) {
                  int64_t from = start + s, within = k % concatShard;
                  int64_t at =
                      concatFirst ? linear(out, k, s, c) : linear(out, s, k, c);
                  int64_t source = concatFirst ? linear(in, within, from, c)
                                               : linear(in, from, within, c);
                  expected[at] = operands[members[k / concatShard]][source];
                }
            ASSERT_TRUE(has(results[device], expected));
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
          ASSERT_TRUE(has(results[device], operands[source]));
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
          ASSERT_TRUE(has(results[device], operands[source]));
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
// 1, 2 and 3 devices in each of 2, 3 and 4 processes, not more, and numbers of
// devices that processes do not divide.
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
