//===- TranscendentalsTest.cpp - Accuracy of generated functions ----------===//
//
// Against libm in f64, over many magnitudes and at the special values.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardc {
namespace {

/// Runs unary op `name` on `points`, as tensor<Nx type>, with the loops of the
/// CPU, and expects the same with those of a GPU.
std::vector<double> runUnary(const std::string &name,
                             const std::vector<double> &points,
                             const std::string &type) {
  std::string t = "tensor<" + std::to_string(points.size()) + "x" + type + ">";
  std::string body = "(" + t + ") -> " + t + " {\n^bb0(%a: " + t +
                     "):\n %0 = shardc." + name + " %a : " + t +
                     "\n shardc.yield %0 : " + t + "\n}";
  KernelHarness onCPU(body), onGPU(body, Mapping::EmulatedGPU);
  if (!onCPU.isReady() || !onGPU.isReady())
    return {};
  Tensor operand({static_cast<int64_t>(points.size())}, 0);
  operand.data = points;
  std::vector<double> result = onCPU.run({operand})[0].data;
  std::vector<double> other = onGPU.run({operand})[0].data;
  for (size_t i = 0; i < result.size(); ++i)
    EXPECT_TRUE(result[i] == other[i] ||
                (std::isnan(result[i]) && std::isnan(other[i])))
        << points[i];
  return result;
}

/// Points of both signs over many magnitudes, all exact in f32.
std::vector<double> getPoints(double smallest, double largest, bool negative) {
  std::vector<double> points;
  for (double x = smallest; x <= largest; x *= 1.0137) {
    points.push_back(float(x));
    if (negative)
      points.push_back(float(-x));
  }
  return points;
}

void expectAccurate(const std::string &name, double (*reference)(double),
                    std::vector<double> points, double ulps) {
  for (std::string type : {"f32", "f64"}) {
    SCOPED_TRACE(name + " " + type);
    bool isF32 = type == "f32";
    std::vector<double> actual = runUnary(name, points, type);
    ASSERT_EQ(actual.size(), points.size());
    double worst = 0, worstPoint = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      double expected = reference(points[i]);
      if (isF32 && std::abs(expected) < 1.2e-38) {
        EXPECT_NEAR(actual[i], expected, 3e-45) << points[i];
        continue;
      }
      if (isF32 && !std::isfinite(float(expected))) {
        EXPECT_EQ(actual[i], float(expected)) << points[i];
        continue;
      }
      double unit = std::abs(expected) * (isF32 ? 0x1p-23 : 0x1p-50);
      double error = std::abs(actual[i] - expected) / std::max(unit, 1e-320);
      if (!(error <= worst)) {
        worst = error;
        worstPoint = points[i];
      }
    }
    EXPECT_LE(worst, ulps) << "at " << worstPoint;
  }
}

TEST(Transcendentals, Exp) {
  expectAccurate("exp", std::exp, getPoints(1e-9, 120, true), 2);
}
TEST(Transcendentals, Expm1) {
  expectAccurate("expm1", std::expm1, getPoints(1e-12, 88, true), 3);
}
TEST(Transcendentals, Log) {
  expectAccurate("log", std::log, getPoints(1.2e-38, 3e38, false), 3);
}
TEST(Transcendentals, Log1p) {
  expectAccurate("log1p", std::log1p, getPoints(1e-12, 3e38, false), 4);
  std::vector<double> below = getPoints(1e-12, 0.999, false);
  for (double &x : below)
    x = -x;
  expectAccurate("log1p", std::log1p, below, 4);
}
TEST(Transcendentals, Tanh) {
  expectAccurate("tanh", std::tanh, getPoints(1e-9, 100, true), 4);
}
TEST(Transcendentals, Erf) {
  expectAccurate("erf", std::erf, getPoints(1e-9, 100, true), 4);
}
TEST(Transcendentals, Sqrt) {
  expectAccurate("sqrt", std::sqrt, getPoints(1e-30, 1e30, false), 1);
}

TEST(Transcendentals, SinCos) {
  std::vector<double> points = getPoints(1e-6, 1e5, true);
  for (auto [name, reference] :
       std::vector<std::pair<const char *, double (*)(double)>>{
           {"sin", std::sin}, {"cos", std::cos}}) {
    std::vector<double> actual = runUnary(name, points, "f32");
    ASSERT_EQ(actual.size(), points.size());
    for (size_t i = 0; i < points.size(); ++i)
      EXPECT_NEAR(actual[i], reference(points[i]), 1e-7) << points[i];
  }
}

TEST(Transcendentals, SpecialValues) {
  double inf = HUGE_VAL, nan = std::nan("");
  auto expect = [&](const char *name, std::vector<double> points,
                    std::vector<double> expected) {
    SCOPED_TRACE(name);
    std::vector<double> actual = runUnary(name, points, "f32");
    ASSERT_EQ(actual.size(), points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(actual[i])) << points[i];
        continue;
      }
      EXPECT_EQ(actual[i], expected[i]) << points[i];
      EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected[i]))
          << points[i];
    }
  };
  expect("exp", {-inf, inf, nan, 0, 1000, -1000}, {0, inf, nan, 1, inf, 0});
  expect("expm1", {-inf, inf, nan, 0, -0.0}, {-1, inf, nan, 0, -0.0});
  expect("log", {-1, inf, nan, 0, 1, -inf}, {nan, inf, nan, -inf, 0, nan});
  expect("log1p", {-1, inf, nan, 0, -2}, {-inf, inf, nan, 0, nan});
  expect("tanh", {-inf, inf, nan, 0, -0.0, 50}, {-1, 1, nan, 0, -0.0, 1});
  expect("erf", {-inf, inf, nan, 0, -0.0, 50}, {-1, 1, nan, 0, -0.0, 1});
  expect("sign", {-3, inf, nan, 0, -0.0}, {-1, 1, nan, 0, -0.0});
  expect("sin", {inf, nan, 0}, {nan, nan, 0});
}

} // namespace
} // namespace shardc
