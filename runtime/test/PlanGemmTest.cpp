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
        // Of the library's masks of relus, which shardc used once.
        GemmMisuse{
            "unknown activation",
            [](fb::PlanT &p) { gemm(p)->activation = fb::Activation(2); }},
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
                     sumColumns(p, 4)->column_sums_of = fb::Summed(2);
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
        GemmMisuse{"overlap a matrix of the GEMM",
                   [](fb::PlanT &p) { gemm(p)->column_sums = gemm(p)->c; }},
        GemmMisuse{"the sums of columns are i32[4], expected f32[4]",
                   [](fb::PlanT &p) {
                     uint32_t sums = sumColumns(p, 4)->column_sums;
                     bufferOf(p, sums).dtype = fb::DType::I32;
                   }}));

} // namespace
