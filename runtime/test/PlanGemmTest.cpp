//===- PlanGemmTest.cpp - GEMMs of plans are verified ---------------------===//

#include "TestPlan.h"

#include "plan/PlanSpec.h"

#include <gtest/gtest.h>

using namespace shardc::rt;
using test::addOwnBuffer;
using test::makePlan;

namespace {

using Edit = void (*)(fb::PlanT &);

/// The GEMM of a [1, 12] by b [12, 4].
fb::GemmT *gemm(fb::PlanT &p) {
  return p.programs[0]->commands[5]->operation.AsGemm();
}

/// Lets the GEMM also write the sums of the columns of b, of which there are
/// 4, to a new buffer of `elements` elements.
fb::GemmT *sumColumns(fb::PlanT &p, int64_t elements) {
  gemm(p)->column_sums = addOwnBuffer(p, fb::DType::F32, {elements});
  return gemm(p);
}

/// Gives the GEMM a relu, or the gradient of one, and a mask.
fb::GemmT *addMask(fb::PlanT &p,
                   fb::Activation activation = fb::Activation::Relu,
                   std::vector<int64_t> shape = {1, 4},
                   fb::DType dtype = fb::DType::I32) {
  gemm(p)->activation = activation;
  gemm(p)->mask = addOwnBuffer(p, dtype, std::move(shape));
  return gemm(p);
}
constexpr fb::Activation gradient = fb::Activation::ReluGradient;

fb::BufferT &bufferOf(fb::PlanT &p, uint32_t number) {
  return *p.programs[0]->buffers[number];
}

/// Makes a buffer one of bf16.
void halve(fb::PlanT &p, uint32_t buffer) {
  bufferOf(p, buffer).dtype = fb::DType::BF16;
  bufferOf(p, buffer).bytes /= 2;
}

const GemmCommand &gemmOf(const PlanSpec &plan) {
  return std::get<GemmCommand>(plan.programs[0].commands[5].operation);
}

TEST(PlanGemmTest, SumsOfColumns) {
  auto plan = Plan::parse(makePlan(2, [](fb::PlanT &p) { sumColumns(p, 4); }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GE(gemmOf((*plan)->spec()).columnSums, 0);
  EXPECT_EQ(gemmOf((*plan)->spec()).columnSumsOf, Summed::B);
}

TEST(PlanGemmTest, Masks) {
  auto plan = Plan::parse(makePlan(2, [](fb::PlanT &p) { addMask(p); }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(gemmOf((*plan)->spec()).activation, Activation::Relu);
  EXPECT_GE(gemmOf((*plan)->spec()).mask, 0);
  plan = Plan::parse(makePlan(2, [](fb::PlanT &p) {
    addMask(p, gradient);
    sumColumns(p, 4)->column_sums_of = fb::Summed::C;
  }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(gemmOf((*plan)->spec()).activation, Activation::ReluGradient);
  EXPECT_EQ(gemmOf((*plan)->spec()).columnSumsOf, Summed::C);
}

/// A fault of a GEMM, and its error.
struct GemmMisuse {
  const char *message;
  Edit edit;
};
class GemmMisuseTest : public testing::TestWithParam<GemmMisuse> {};

TEST_P(GemmMisuseTest, IsAnError) {
  absl::Status status = Plan::parse(makePlan(2, GetParam().edit)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find(GetParam().message), absl::string_view::npos)
      << status;
}

INSTANTIATE_TEST_SUITE_P(
    Gemms, GemmMisuseTest,
    testing::Values(
        GemmMisuse{"", [](fb::PlanT &p) { gemm(p)->m = -1; }},
        GemmMisuse{"k=13 batch=1 have other sizes",
                   [](fb::PlanT &p) { gemm(p)->k = 13; }},
        GemmMisuse{"buffer 1000 of",
                   [](fb::PlanT &p) { gemm(p)->bias = 1000; }},
        GemmMisuse{"", [](fb::PlanT &p) { gemm(p)->c = gemm(p)->a; }},
        GemmMisuse{
            "unknown activation",
            [](fb::PlanT &p) { gemm(p)->activation = fb::Activation(5); }},
        GemmMisuse{"unknown precision",
                   [](fb::PlanT &p) { gemm(p)->precision = fb::Precision(3); }},
        GemmMisuse{"needs factors of one type, f32 or bf16",
                   [](fb::PlanT &p) { halve(p, gemm(p)->b); }},
        GemmMisuse{"and a result of that type or of f32",
                   [](fb::PlanT &p) { halve(p, gemm(p)->c); }}));

INSTANTIATE_TEST_SUITE_P(
    SumsOfColumns, GemmMisuseTest,
    testing::Values(
        GemmMisuse{"buffer 1000 of",
                   [](fb::PlanT &p) { sumColumns(p, 4)->column_sums = 1000; }},
        GemmMisuse{"the sums of columns are f32[3], expected f32[4]",
                   [](fb::PlanT &p) { sumColumns(p, 3); }},
        GemmMisuse{"unknown operand whose columns are summed",
                   [](fb::PlanT &p) {
                     sumColumns(p, 4)->column_sums_of = fb::Summed(3);
                   }},
        GemmMisuse{"are not along k",
                   [](fb::PlanT &p) {
                     sumColumns(p, 1)->column_sums_of = fb::Summed::A;
                   }},
        GemmMisuse{"are not along k",
                   [](fb::PlanT &p) { sumColumns(p, 4)->transpose_b = true; }},
        GemmMisuse{"without bias and activation",
                   [](fb::PlanT &p) {
                     sumColumns(p, 4)->activation = fb::Activation::Relu;
                   }},
        GemmMisuse{"without bias and activation",
                   [](fb::PlanT &p) {
                     addMask(p, gradient);
                     sumColumns(p, 4);
                   }},
        GemmMisuse{"without bias and with the gradient of a relu",
                   [](fb::PlanT &p) {
                     addMask(p);
                     sumColumns(p, 4)->column_sums_of = fb::Summed::C;
                   }},
        GemmMisuse{"overlap a matrix of the GEMM",
                   [](fb::PlanT &p) { gemm(p)->column_sums = gemm(p)->c; }},
        GemmMisuse{"the sums of columns are i32[4], expected f32[4]",
                   [](fb::PlanT &p) {
                     uint32_t sums = sumColumns(p, 4)->column_sums;
                     bufferOf(p, sums).dtype = fb::DType::I32;
                   }}));

INSTANTIATE_TEST_SUITE_P(
    Masks, GemmMisuseTest,
    testing::Values(
        GemmMisuse{"the gradient of a relu needs its mask",
                   [](fb::PlanT &p) { gemm(p)->activation = gradient; }},
        GemmMisuse{"buffer 1000 of",
                   [](fb::PlanT &p) { addMask(p)->mask = 1000; }},
        GemmMisuse{"the mask is i32[1,3], expected i32[1,4]",
                   [](fb::PlanT &p) {
                     addMask(p, gradient, {1, 3});
                   }},
        GemmMisuse{"the mask is i32[4], expected i32[1,4]",
                   [](fb::PlanT &p) { addMask(p, gradient, {4}); }},
        GemmMisuse{"the mask is f32[1,4], expected i32[1,4]",
                   [](fb::PlanT &p) {
                     addMask(p, gradient, {1, 4}, fb::DType::F32);
                   }},
        GemmMisuse{"a mask needs one GEMM that does not accumulate",
                   [](fb::PlanT &p) { addMask(p, fb::Activation::None); }},
        GemmMisuse{"a mask needs one GEMM that does not accumulate",
                   [](fb::PlanT &p) { addMask(p)->accumulate = true; }},
        GemmMisuse{"a mask needs one GEMM that does not accumulate",
                   [](fb::PlanT &p) {
                     int32_t bias = addOwnBuffer(p, fb::DType::F32, {4});
                     addMask(p, gradient)->bias = bias;
                   }},
        GemmMisuse{"not at multiples of 16",
                   [](fb::PlanT &p) {
                     p.alignment = 8;
                     uint32_t mask = addMask(p)->mask;
                     bufferOf(p, mask).offset += 8;
                   }},
        GemmMisuse{"not at multiples of 16",
                   [](fb::PlanT &p) {
                     uint32_t mask = addMask(p)->mask;
                     bufferOf(p, mask).stride = 8;
                   }},
        GemmMisuse{"the mask overlaps another operand of the GEMM",
                   [](fb::PlanT &p) {
                     uint32_t mask = addMask(p)->mask;
                     bufferOf(p, mask).offset = bufferOf(p, gemm(p)->c).offset;
                   }},
        GemmMisuse{"the mask overlaps another operand of the GEMM",
                   [](fb::PlanT &p) {
                     uint32_t mask = addMask(p, gradient)->mask;
                     uint32_t sums = sumColumns(p, 4)->column_sums;
                     gemm(p)->column_sums_of = fb::Summed::C;
                     bufferOf(p, sums).offset = bufferOf(p, mask).offset;
                   }}));

} // namespace
