//===- CudaGemmFixture.h - GEMMs given to a fake cuBLASLt -------*- C++ -*-===//
//
// The fake computes the requested GEMM, column by column; here it is compared
// with the definition of the plan's GEMM, row by row.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TEST_CUDAGEMMFIXTURE_H
#define SHARDC_RT_TEST_CUDAGEMMFIXTURE_H

#include "fake/Fake.h"

#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Gemm.h"
#include "backends/cuda/PinnedMemory.h"

#include "base/Convert.h"
#include "shardc-rt/HostArray.h"

#include <algorithm>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace shardc::rt::test {

/// A value whose sums and GEMMs are exact.
inline float valueAt(int64_t i) { return (i * 7 + i / 5) % 9 - 4; }

class CudaGemmTest : public testing::Test {
protected:
  void SetUp() override {
    library = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    fake = reinterpret_cast<test::Fake *(*)()>(dlsym(library, "shardcFake"))();
    *fake = test::Fake();
    driver = *cuda::Driver::open(FAKE_LIBRARY);
    api = *cuda::CublasLt::open(FAKE_LIBRARY);
    context = *cuda::Context::create(*driver, 0);
    gemms = *cuda::GemmLibrary::create(*api, *context);
  }
  void TearDown() override {
    gemms.reset();
    context.reset();
    EXPECT_EQ(fake->handles(), 0);
    dlclose(library);
  }

  /// Memory of the GPU with the values from `first` on.
  cuda::DeviceMemory fill(DType dtype, int64_t elements, int64_t first) {
    auto memory =
        cuda::DeviceMemory::allocate(*context, elements * byteSize(dtype), "");
    // The fake's memory is the host's.
    void *data = reinterpret_cast<void *>(memory->address());
    for (int64_t i = 0; i < elements; ++i)
      if (dtype == DType::F32)
        static_cast<float *>(data)[i] = valueAt(first + i);
      else
        static_cast<uint16_t *>(data)[i] = toBF16(valueAt(first + i));
    return *std::move(memory);
  }

  /// Runs the GEMM and compares all that it writes.
  void check(const GemmCommand &gemm, GemmTypes types) {
    cuda::DeviceMemory a = fill(types.factors, gemm.batch * gemm.m * gemm.k, 0);
    cuda::DeviceMemory b =
        fill(types.factors, gemm.batch * gemm.k * gemm.n, 1000);
    cuda::DeviceMemory c =
        fill(types.result, gemm.batch * gemm.m * gemm.n, 2000);
    int64_t columns = gemm.numColumnSums();
    cuda::DeviceMemory vector = fill(types.result, columns, 3000);
    cuda::GemmOperands operands{a.address(), b.address(), c.address(),
                                cuda::vectorOf(gemm) >= 0 ? vector.address()
                                                          : 0};
    auto prepared = cuda::Gemm::prepare(*gemms, {0, &gemm, types, 64}, operands,
                                        1 << 20, nullptr);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    EXPECT_EQ((*prepared)->workspaceBytes(), fake->workspaceBytes);
    auto workspace = cuda::DeviceMemory::allocate(
        *context, (*prepared)->workspaceBytes(), "");
    auto stream = cuda::Stream::create(*context);
    absl::Status status =
        (*prepared)->issue(operands, workspace->address(), *stream);
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
      for (int64_t row = 0; row < gemm.k; ++row)
        expected += valueAt((gemm.columnSumsOf == Summed::A ? 0 : 1000) +
                            row * columns + i);
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
  test::Fake *fake = nullptr;
  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::CublasLt> api;
  std::unique_ptr<cuda::Context> context;
  std::unique_ptr<cuda::GemmLibrary> gemms;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_CUDAGEMMFIXTURE_H
