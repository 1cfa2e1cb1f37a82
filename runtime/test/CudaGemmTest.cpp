//===- CudaGemmTest.cpp - GEMMs given to a fake cuBLASLt ------------------===//

#include "CudaGemmFixture.h"

#include <set>

using namespace shardc::rt;
using test::CudaGemmTest;

TEST_F(CudaGemmTest, ComputesEveryKindOfGemm) {
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

/// All GEMMs for which the library has gradients of a bias.
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
      gemm.columnSumsOf = bits & 1 ? Summed::A : Summed::B;
      gemm.transposeA = bits & 3;
      gemm.transposeB = (bits & 3) == 3;
      gemm.accumulate = bits & 4;
      check(gemm, types);
      if (HasFatalFailure())
        return;
    }
}

/// Names tell GEMMs apart whose algorithms may differ.
TEST_F(CudaGemmTest, NamesSayWhatComesWithAGemm) {
  GemmCommand gemm = {};
  gemm.bias = -1;
  std::set<std::string> names;
  auto insert = [&] {
    names.insert(
        cuda::GemmRequest{0, &gemm, {DType::F32, DType::F32}, 64}.name());
  };
  insert();
  gemm.activation = Activation::Relu;
  insert();
  gemm.activation = Activation::None;
  gemm.columnSums = 3;
  for (Summed of : {Summed::A, Summed::B}) {
    gemm.columnSumsOf = of;
    insert();
  }
  EXPECT_EQ(names.size(), 4u);
}

TEST_F(CudaGemmTest, AsksForThePrecision) {
  GemmCommand gemm = {};
  gemm.bias = -1;
  gemm.batch = gemm.m = gemm.n = gemm.k = 1;
  auto computeType = [&](Precision precision, DType dtype) {
    gemm.precision = precision;
    fake->details.clear();
    EXPECT_TRUE(cuda::Gemm::prepare(*gemms, {0, &gemm, {dtype, dtype}, 64}, {},
                                    0, nullptr)
                    .ok());
    for (const std::string &call : fake->details)
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
  GemmCommand batched = {};
  batched.bias = 3;
  batched.batch = 2;
  batched.m = batched.n = batched.k = 4;
  GemmCommand summed = batched;
  summed.batch = 1;
  summed.bias = -1;
  summed.columnSums = 3;
  int64_t before = fake->handles();
  for (const GemmCommand &gemm : {batched, summed})
    for (int64_t call = 1;; ++call) {
      fake->calls.clear();
      fake->failAt = call;
      bool ok =
          cuda::Gemm::prepare(*gemms, {0, &gemm, {DType::F32, DType::F32}, 64},
                              {256, 256, 256, 256}, 64, nullptr)
              .ok();
      EXPECT_EQ(fake->handles(), before) << call;
      if (static_cast<int64_t>(fake->calls.size()) < call)
        break;
      const std::string &failed = fake->calls[call - 1];
      EXPECT_EQ(ok, failed.find("Destroy") != std::string::npos) << failed;
    }
  fake->failAt = 0;
}
