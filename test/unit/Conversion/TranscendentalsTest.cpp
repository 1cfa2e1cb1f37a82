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

/// Runs op `name` on one or two lists of points, as tensor<Nx type>, with the
/// loops of the CPU, and expects the same with those of a GPU.
std::vector<double> runOp(const std::string &name,
                          const std::vector<std::vector<double>> &points,
                          const std::string &type) {
  int64_t size = points[0].size();
  std::string t = tensor({size}, type.c_str()), types, arguments, operands;
  std::vector<Tensor> tensors;
  for (const std::vector<double> &each : points) {
    std::string value = "%" + std::to_string(tensors.size());
    const char *comma = tensors.empty() ? "" : ", ";
    types += comma + t;
    arguments += comma + value + ": " + t;
    operands += comma + value;
    tensors.push_back(Tensor({size}, 0));
    tensors.back().data = each;
  }
  std::string body = "(" + types + ") -> " + t + " {\n^bb0(" + arguments +
                     "):\n %r = shardc." + name + " " + operands + " : " + t +
                     "\n shardc.yield %r : " + t + "\n}";
  KernelHarness onCPU(body), onGPU(body, Mapping::EmulatedGPU);
  if (!onCPU.isReady() || !onGPU.isReady())
    return {};
  std::vector<double> result = onCPU.run(tensors)[0].data;
  std::vector<double> other = onGPU.run(tensors)[0].data;
  for (size_t i = 0; i < result.size(); ++i)
    EXPECT_TRUE(result[i] == other[i] ||
                (std::isnan(result[i]) && std::isnan(other[i])))
        << points[0][i];
  return result;
}

std::vector<double> runUnary(const std::string &name,
                             const std::vector<double> &points,
                             const std::string &type) {
  return runOp(name, {points}, type);
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

TEST(Transcendentals, Floor) {
  std::vector<double> points = getPoints(1e-3, 1e17, true);
  for (double x : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 2.0, -3.0})
    points.push_back(x);
  for (const char *type : {"f32", "f64"}) {
    std::vector<double> actual = runUnary("floor", points, type);
    ASSERT_EQ(actual.size(), points.size());
    for (size_t i = 0; i < points.size(); ++i)
      EXPECT_TRUE(actual[i] == std::floor(points[i]) ||
                  (std::isnan(actual[i]) && std::isnan(points[i])))
          << points[i];
  }
}

/// All pairs of `points`.
std::pair<std::vector<double>, std::vector<double>>
getPairs(const std::vector<double> &points) {
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (double x : points)
    for (double y : points) {
      pairs.first.push_back(x);
      pairs.second.push_back(y);
    }
  return pairs;
}

TEST(Transcendentals, RemainderIsExact) {
  std::vector<double> points;
  for (double x = 1.1e-45; x < 3e38; x *= 191.7)
    for (double y : {double(float(x)), -double(float(x))})
      points.push_back(y);
  for (double x :
       {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1.0, 3.0, 7.5, -7.5})
    points.push_back(x);
  auto [x, y] = getPairs(points);
  for (const char *type : {"f32", "f64"}) {
    std::vector<double> actual = runOp("remainder", {x, y}, type);
    ASSERT_EQ(actual.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      double expected = std::fmod(x[i], y[i]);
      EXPECT_TRUE(actual[i] == expected ||
                  (std::isnan(actual[i]) && std::isnan(expected)))
          << x[i] << " " << y[i] << ": " << actual[i] << ", expected "
          << expected;
      if (expected == 0) {
        EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected)) << x[i];
      }
    }
  }
  EXPECT_EQ(runOp("remainder",
                  {{7, -7, 7, 5, -2147483648.0}, {3, 3, -3, 0, -1}}, "i32"),
            (std::vector<double>{1, -1, 1, 5, 0}));
}

TEST(Transcendentals, Power) {
  std::vector<double> points;
  for (double x = 1e-3; x < 1e4; x *= 2.71)
    for (double y : {double(float(x)), -double(float(x))})
      points.push_back(y);
  for (double x : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1.0, -1.0, 2.0,
                   -3.0, 0.5, 1e30, -1e-30})
    points.push_back(float(x));
  auto [x, y] = getPairs(points);
  for (const char *type : {"f32", "f64"}) {
    std::vector<double> actual = runOp("power", {x, y}, type);
    ASSERT_EQ(actual.size(), x.size());
    bool isF32 = type == std::string("f32");
    for (size_t i = 0; i < x.size(); ++i) {
      double expected = std::pow(x[i], y[i]);
      if (isF32)
        expected = float(expected);
      bool isEqual = actual[i] == expected ||
                     (std::isnan(actual[i]) && std::isnan(expected));
      // Numbers below the normal ones are rounded to zero or their neighbour.
      double bound = isF32 ? 1.5e-7 * std::abs(expected) + 3e-45
                           : 1e-12 * std::abs(expected) + 1e-307;
      EXPECT_TRUE(isEqual || std::abs(actual[i] - expected) <= bound)
          << type << " " << x[i] << " " << y[i] << ": " << actual[i]
          << ", expected " << expected;
    }
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
