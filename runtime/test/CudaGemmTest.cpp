//===- CudaGemmTest.cpp - Products given to cuBLASLt's stand-in -----------===//
//
// The stand-in computes what it is asked for, column by column; here it is
// compared with the definition of the plan's product, row by row.
//
//===----------------------------------------------------------------------===//

#include "standin/StandIn.h"

#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Gemm.h"
#include "backends/cuda/PinnedMemory.h"

#include "shardc-rt/Convert.h"
#include "shardc-rt/HostArray.h"

#include <algorithm>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <set>

using namespace shardc::rt;

namespace {

/// A value that sums and products keep exact.
float valueAt(int64_t i) { return (i * 7 + i / 5) % 9 - 4; }

class CudaGemmTest : public testing::Test {
protected:
  void SetUp() override {
    library = dlopen(STAND_IN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    standIn = reinterpret_cast<test::StandIn *(*)()>(
        dlsym(library, "shardcStandIn"))();
    *standIn = test::StandIn();
    driver = *cuda::Driver::open(STAND_IN);
    api = *cuda::CublasLt::open(STAND_IN);
    context = *cuda::Context::create(*driver, 0);
    gemms = *cuda::GemmLibrary::create(*api, *context);
  }
  void TearDown() override {
    gemms.reset();
    context.reset();
    EXPECT_EQ(standIn->handles(), 0);
    dlclose(library);
  }

  /// Memory of the GPU with the values from `first` on.
  cuda::DeviceMemory fill(DType dtype, int64_t elements, int64_t first) {
    auto memory =
        cuda::DeviceMemory::allocate(*context, elements * byteSize(dtype), "");
    // The stand-in's memory is the host's.
    void *data = reinterpret_cast<void *>(memory->address());
    for (int64_t i = 0; i < elements; ++i)
      if (dtype == DType::F32)
        static_cast<float *>(data)[i] = valueAt(first + i);
      else
        static_cast<uint16_t *>(data)[i] = toBF16(valueAt(first + i));
    return *std::move(memory);
  }

  void check(const GemmCommand &gemm, GemmTypes types) {
    cuda::DeviceMemory a = fill(types.factors, gemm.batch * gemm.m * gemm.k, 0);
    cuda::DeviceMemory b =
        fill(types.factors, gemm.batch * gemm.k * gemm.n, 1000);
    cuda::DeviceMemory c =
        fill(types.result, gemm.batch * gemm.m * gemm.n, 2000);
    int64_t columns = gemm.columnSumsOfA ? gemm.m : gemm.n;
    cuda::DeviceMemory vector = fill(types.result, columns, 3000);
    auto prepared = cuda::Gemm::prepare(*gemms, {0, &gemm, types, 64},
                                        vector.address(), 1 << 20, nullptr);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_EQ((*prepared)->workspaceBytes(), standIn->workspaceBytes);
    auto workspace = cuda::DeviceMemory::allocate(
        *context, (*prepared)->workspaceBytes(), "");
    auto stream = cuda::Stream::create(*context);
    absl::Status status =
        (*prepared)->issue({a.address(), b.address(), c.address(),
                            cuda::vectorOf(gemm) >= 0 ? vector.address() : 0},
                           workspace->address(), *stream);
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t batch = 0; batch < gemm.batch; ++batch)
      for (int64_t i = 0; i < gemm.m; ++i)
        for (int64_t j = 0; j < gemm.n; ++j) {
          int64_t at = (batch * gemm.m + i) * gemm.n + j;
          float expected = gemm.accumulate ? valueAt(2000 + at) : 0;
          for (int64_t k = 0; k < gemm.k; ++k)
            expected +=
                valueAt(batch * gemm.m * gemm.k +
                        (gemm.transposeA ? k * gemm.m + i : i * gemm.k + k)) *
                valueAt(1000 + batch * gemm.k * gemm.n +
                        (gemm.transposeB ? j * gemm.k + k : k * gemm.n + j));
          if (gemm.bias >= 0)
            expected += valueAt(3000 + j);
          if (gemm.activation == Activation::Relu)
            expected = std::max(expected, 0.0f);
          ASSERT_EQ(load(c, types.result, at), expected)
              << batch << " " << i << " " << j;
        }
    for (int64_t i = 0; i < columns && gemm.columnSums >= 0; ++i) {
      float expected = 0;
      for (int64_t k = 0; k < gemm.k; ++k)
        expected += valueAt((gemm.columnSumsOfA ? 0 : 1000) + k * columns + i);
      ASSERT_EQ(load(vector, types.result, i), expected) << i;
    }
  }

  static float load(const cuda::DeviceMemory &memory, DType dtype, int64_t at) {
    const void *data = reinterpret_cast<const void *>(memory.address());
    return dtype == DType::F32
               ? static_cast<const float *>(data)[at]
               : fromBF16(static_cast<const uint16_t *>(data)[at]);
  }

  void *library = nullptr;
  test::StandIn *standIn = nullptr;
  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::CublasLt> api;
  std::unique_ptr<cuda::Context> context;
  std::unique_ptr<cuda::GemmLibrary> gemms;
};

} // namespace

TEST_F(CudaGemmTest, ComputesEveryKindOfProduct) {
  for (GemmTypes types :
       {GemmTypes{DType::F32, DType::F32}, GemmTypes{DType::BF16, DType::BF16},
        GemmTypes{DType::BF16, DType::F32}})
    for (int bits = 0; bits < 32; ++bits)
      for (int64_t batch : {1, 3}) {
        GemmCommand gemm = {};
        gemm.bias = bits & 1 ? 3 : -1;
        gemm.batch = batch;
        gemm.m = 5;
        gemm.n = 3;
        gemm.k = 4;
        gemm.transposeA = bits & 2;
        gemm.transposeB = bits & 4;
        gemm.accumulate = bits & 8;
        gemm.activation = bits & 16 ? Activation::Relu : Activation::None;
        check(gemm, types);
        if (HasFatalFailure())
          return;
      }
}

/// All for which the library has gradients of a bias.
TEST_F(CudaGemmTest, SumsColumnsOfEitherFactor) {
  for (GemmTypes types :
       {GemmTypes{DType::F32, DType::F32}, GemmTypes{DType::BF16, DType::BF16},
        GemmTypes{DType::BF16, DType::F32}})
    for (int bits = 0; bits < 8; ++bits) {
      GemmCommand gemm = {};
      gemm.bias = -1;
      gemm.batch = 1;
      gemm.m = 5;
      gemm.n = 3;
      gemm.k = 4;
      gemm.columnSums = 3;
      gemm.columnSumsOfA = bits & 1;
      gemm.transposeA = gemm.columnSumsOfA || bits & 2;
      gemm.transposeB = gemm.columnSumsOfA && bits & 2;
      gemm.accumulate = bits & 4;
      check(gemm, types);
      if (HasFatalFailure())
        return;
    }
}

/// Names tell products apart whose algorithms may differ.
TEST_F(CudaGemmTest, NamesSayWhatIsSummed) {
  GemmCommand gemm = {};
  gemm.bias = -1;
  std::set<std::string> names;
  for (int sums : {-1, 0, 1}) {
    gemm.columnSums = sums;
    gemm.columnSumsOfA = sums == 1;
    names.insert(
        cuda::GemmRequest{0, &gemm, {DType::F32, DType::F32}, 64}.name());
  }
  EXPECT_EQ(names.size(), 3u);
}

TEST_F(CudaGemmTest, AsksForThePrecision) {
  GemmCommand gemm = {};
  gemm.bias = -1;
  gemm.batch = gemm.m = gemm.n = gemm.k = 1;
  auto computeType = [&](Precision precision, DType dtype) {
    gemm.precision = precision;
    standIn->details.clear();
    EXPECT_TRUE(cuda::Gemm::prepare(*gemms, {0, &gemm, {dtype, dtype}, 64}, 0,
                                    0, nullptr)
                    .ok());
    for (const std::string &call : standIn->details)
      if (call.rfind("cublasLtMatmulDescCreate", 0) == 0)
        return call;
    return std::string();
  };
  // cublasComputeType_t.
  EXPECT_EQ(computeType(Precision::Highest, DType::F32),
            "cublasLtMatmulDescCreate(68)");
  EXPECT_EQ(computeType(Precision::TF32, DType::F32),
            "cublasLtMatmulDescCreate(77)");
  EXPECT_EQ(computeType(Precision::BF16, DType::F32),
            "cublasLtMatmulDescCreate(75)");
  EXPECT_EQ(computeType(Precision::TF32, DType::BF16),
            "cublasLtMatmulDescCreate(68)");
}

TEST_F(CudaGemmTest, EveryFailureIsCleanedUp) {
  GemmCommand gemm = {};
  gemm.bias = 3;
  gemm.batch = 2;
  gemm.m = gemm.n = gemm.k = 4;
  int64_t before = standIn->handles();
  for (int64_t call = 1;; ++call) {
    standIn->calls.clear();
    standIn->failAt = call;
    bool ok =
        cuda::Gemm::prepare(*gemms, {0, &gemm, {DType::F32, DType::F32}, 64},
                            256, 64, nullptr)
            .ok();
    EXPECT_EQ(standIn->handles(), before) << call;
    if (static_cast<int64_t>(standIn->calls.size()) < call)
      break;
    EXPECT_EQ(ok, standIn->calls[call - 1].find("Destroy") != std::string::npos)
        << standIn->calls[call - 1];
  }
  standIn->failAt = 0;
}
