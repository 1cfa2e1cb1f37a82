//===- EvaluateOpTest.cpp - Core ops against values by hand ---------------===//

#include "InterpreterTest.h"

#include "shardc/Interpreter/EvaluateOp.h"

#include <cmath>

using namespace shardc;
using Elements = std::vector<double>;

namespace {

class EvaluateOpTest : public InterpreterTest {
protected:
  /// The result of the one op in `line`, of operands named %0, %1, ... of
  /// `types`, on `device` of the mesh a=2, b=3.
  Tensor evaluate(const std::string &line, std::vector<std::string> types,
                  std::vector<Tensor> operands, int64_t device = 0,
                  const MicrobatchRows &microbatch = {}) {
    std::string arguments;
    for (size_t i = 0; i < types.size(); ++i)
      arguments += (i ? ", %" : "%") + std::to_string(i) + ": " + types[i];
    parse("shardc.mesh @mesh <[\"a\" = 2, \"b\" = 3]>\nfunc.func @f(" +
          arguments + ") {\n %r = shardc." + line + "\n return\n}");
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    mlir::Operation *op = &function.getBody().front().front();
    EXPECT_TRUE(isCoreOp(op));
    std::vector<const Tensor *> pointers;
    for (const Tensor &tensor : operands)
      pointers.push_back(&tensor);
    Devices devices(MeshAxes({{"a", 2}, {"b", 3}}));
    mlir::FailureOr<Tensor> result =
        evaluateOp(op, pointers, devices, device, microbatch);
    EXPECT_TRUE(succeeded(result));
    auto type = mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType());
    EXPECT_EQ(type.getShape(), llvm::ArrayRef<int64_t>(result->shape));
    return *result;
  }

  Elements unary(const std::string &name, Elements x) {
    int64_t size = x.size();
    std::string type = "tensor<" + std::to_string(size) + "xf32>";
    return evaluate(name + " %0 : " + type, {type}, {make({size}, x)}).data;
  }

  Elements binary(const std::string &name, Elements x, Elements y,
                  const std::string &element = "f32") {
    int64_t size = x.size();
    std::string type = "tensor<" + std::to_string(size) + "x" + element + ">";
    return evaluate(name + " %0, %1 : " + type, {type, type},
                    {make({size}, x), make({size}, y)})
        .data;
  }
};

TEST_F(EvaluateOpTest, Unary) {
  EXPECT_EQ(unary("neg", {1, -2}), (Elements{-1, 2}));
  EXPECT_EQ(unary("abs", {1, -2}), (Elements{1, 2}));
  EXPECT_EQ(unary("sign", {3, -2, 0}), (Elements{1, -1, 0}));
  EXPECT_EQ(unary("exp", {0, 1}), (Elements{1, std::exp(1.0)}));
  EXPECT_EQ(unary("expm1", {0}), (Elements{0}));
  EXPECT_EQ(unary("log", {1}), (Elements{0}));
  EXPECT_EQ(unary("log1p", {0}), (Elements{0}));
  EXPECT_EQ(unary("sqrt", {9}), (Elements{3}));
  EXPECT_EQ(unary("rsqrt", {4}), (Elements{0.5}));
  EXPECT_EQ(unary("tanh", {0}), (Elements{0}));
  EXPECT_EQ(unary("erf", {0}), (Elements{0}));
  EXPECT_EQ(unary("cos", {0}), (Elements{1}));
  EXPECT_EQ(unary("sin", {0}), (Elements{0}));
  EXPECT_EQ(unary("stop_gradient", {5}), (Elements{5}));
}

TEST_F(EvaluateOpTest, Binary) {
  EXPECT_EQ(binary("add", {1, 2}, {3, 5}), (Elements{4, 7}));
  EXPECT_EQ(binary("sub", {1, 2}, {3, 5}), (Elements{-2, -3}));
  EXPECT_EQ(binary("mul", {4, 2}, {3, 5}), (Elements{12, 10}));
  EXPECT_EQ(binary("div", {3}, {2}), (Elements{1.5}));
  EXPECT_EQ(binary("div", {-3, 3}, {2, 2}, "i32"), (Elements{-1, 1}));
  EXPECT_EQ(binary("max", {1, 5}, {3, 2}), (Elements{3, 5}));
  EXPECT_EQ(binary("min", {1, 5}, {3, 2}), (Elements{1, 2}));
}

TEST_F(EvaluateOpTest, SumsOfBools) {
  EXPECT_EQ(binary("add", {0, 0, 1, 1}, {0, 1, 0, 1}, "i1"),
            (Elements{0, 1, 1, 1}));
  Tensor x = make({3, 2}, {0, 1, 0, 1, 0, 0});
  EXPECT_EQ(evaluate("reduce sum %0 dims = [0] : tensor<3x2xi1> -> "
                     "tensor<2xi1>",
                     {"tensor<3x2xi1>"}, {x})
                .data,
            (Elements{0, 1}));
  EXPECT_EQ(evaluate("dot_general %0, %1 contracting = [0] x [0] : "
                     "tensor<3x2xi1>, tensor<3x2xi1> -> tensor<2x2xi1>",
                     {"tensor<3x2xi1>", "tensor<3x2xi1>"}, {x, x})
                .data,
            (Elements{0, 0, 0, 1}));
}

TEST_F(EvaluateOpTest, FloorRemainderPower) {
  EXPECT_EQ(unary("floor", {1.5, -1.5, -2}), (Elements{1, -2, -2}));
  EXPECT_EQ(binary("remainder", {7, -7, 7.5, 1e30}, {3, 3, -2, 7}),
            (Elements{1, -1, 1.5, std::fmod(1e30, 7)}));
  EXPECT_EQ(binary("remainder", {7, -7, 5}, {3, 3, 0}, "i32"),
            (Elements{1, -1, 5}));
  EXPECT_EQ(binary("power", {2, -2, 9, 0}, {3, 3, 0.5, 0}),
            (Elements{8, -8, 3, 1}));
}

TEST_F(EvaluateOpTest, Bits) {
  double lowest = -2147483648.0;
  EXPECT_EQ(binary("and", {12, -1}, {10, 5}, "i32"), (Elements{8, 5}));
  EXPECT_EQ(binary("or", {12, -8}, {10, 5}, "i32"), (Elements{14, -3}));
  EXPECT_EQ(binary("xor", {12, -1}, {10, 5}, "i32"), (Elements{6, -6}));
  EXPECT_EQ(binary("shift_left", {1, 1, 3, 1}, {31, 32, 31, -1}, "i32"),
            (Elements{lowest, 0, lowest, 0}));
  EXPECT_EQ(binary("shift_right_logical", {-1, -1, 8}, {28, 32, 2}, "i32"),
            (Elements{15, 0, 2}));
  EXPECT_EQ(
      binary("shift_right_arithmetic", {-9, -9, 9, -9}, {1, 40, 1, -1}, "i32"),
      (Elements{-5, -1, 4, -1}));
  EXPECT_EQ(binary("add", {2147483647}, {1}, "i32"), (Elements{lowest}));
  EXPECT_EQ(binary("sub", {lowest}, {1}, "i32"), (Elements{2147483647}));
  EXPECT_EQ(binary("mul", {65537}, {65537}, "i32"), (Elements{131073}));
  EXPECT_EQ(binary("shift_right_logical", {1099511627776.0}, {33}, "i64"),
            (Elements{128}));
  Tensor x = make({2, 1}, {1, -2});
  std::string f = "tensor<2x1xf32>", i = "tensor<2x1xi32>",
              l = "tensor<2x1xi64>";
  EXPECT_EQ(evaluate("bitcast %0 : " + f + " -> " + i, {f}, {x}).data,
            (Elements{0x3f800000, -1073741824.0}));
  EXPECT_EQ(evaluate("bitcast %0 : " + i + " -> " + f, {i},
                     {make({2, 1}, {0x3f800000, -1073741824.0})})
                .data,
            (Elements{1, -2}));
  EXPECT_EQ(evaluate("convert %0 : " + l + " -> " + i, {l},
                     {make({2, 1}, {4294967295.0, 4294967298.0})})
                .data,
            (Elements{-1, 2}));
}

TEST_F(EvaluateOpTest, SlicesPaddingConcatenations) {
  std::string t = "tensor<2x5xf32>", u = "tensor<2x2xf32>";
  Tensor x = make({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
         y = make({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(evaluate("extract_slice %0 starts = [0, 1] strides = [1, 3] : " +
                         t + " -> " + u,
                     {t}, {x})
                .data,
            (Elements{1, 4, 6, 9}));
  EXPECT_EQ(evaluate("pad %0 low = [0, 1] interior = [0, 1] fill = 7.0 : " + u +
                         " -> " + t,
                     {u}, {y})
                .data,
            (Elements{7, 1, 7, 2, 7, 7, 3, 7, 4, 7}));
  EXPECT_EQ(evaluate("concatenate %0, %1 dim = 1 : (" + u + ", " + t +
                         ") -> tensor<2x7xf32>",
                     {u, t}, {y, x})
                .data,
            (Elements{1, 2, 0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(EvaluateOpTest, PermuteRows) {
  std::string t = "tensor<2x3xf32>";
  Tensor x = make({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(
      evaluate("permute_rows %0 dim = 1 sources = [2, 0, 1] : " + t, {t}, {x})
          .data,
      (Elements{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(
      evaluate("permute_rows %0 dim = 0 sources = [1, 0] : " + t, {t}, {x})
          .data,
      (Elements{3, 4, 5, 0, 1, 2}));
}

TEST_F(EvaluateOpTest, PaddingIsNotLost) {
  double nan = std::nan("");
  EXPECT_TRUE(std::isnan(binary("max", {nan}, {1})[0]));
  EXPECT_TRUE(std::isnan(binary("xor", {nan}, {1}, "i32")[0]));
  EXPECT_TRUE(std::isnan(binary("add", {1}, {nan}, "i32")[0]));
  EXPECT_TRUE(std::isnan(binary("max", {1}, {nan})[0]));
  EXPECT_TRUE(std::isnan(binary("min", {nan}, {1})[0]));
  EXPECT_TRUE(std::isnan(binary("min", {1}, {nan})[0]));
  EXPECT_TRUE(std::isnan(unary("sign", {nan})[0]));
}

TEST_F(EvaluateOpTest, CompareAndSelect) {
  auto compare = [&](const std::string &kind) {
    return evaluate("compare " + kind +
                        " %0, %1 : tensor<3xf32> -> tensor<3xi1>",
                    {"tensor<3xf32>", "tensor<3xf32>"},
                    {make({3}, {1, 2, 3}), make({3}, {2, 2, 2})})
        .data;
  };
  EXPECT_EQ(compare("eq"), (Elements{0, 1, 0}));
  EXPECT_EQ(compare("ne"), (Elements{1, 0, 1}));
  EXPECT_EQ(compare("lt"), (Elements{1, 0, 0}));
  EXPECT_EQ(compare("le"), (Elements{1, 1, 0}));
  EXPECT_EQ(compare("gt"), (Elements{0, 0, 1}));
  EXPECT_EQ(compare("ge"), (Elements{0, 1, 1}));
  EXPECT_EQ(evaluate("select %0, %1, %2 : tensor<2xi1>, tensor<2xf32>",
                     {"tensor<2xi1>", "tensor<2xf32>", "tensor<2xf32>"},
                     {make({2}, {1, 0}), make({2}, {3, 4}), make({2}, {5, 6})})
                .data,
            (Elements{3, 6}));
}

TEST_F(EvaluateOpTest, Convert) {
  auto convert = [&](const std::string &from, const std::string &to,
                     double value) {
    return evaluate("convert %0 : tensor<" + from + "> -> tensor<" + to + ">",
                    {"tensor<" + from + ">"}, {make({}, {value})})
        .data[0];
  };
  EXPECT_EQ(convert("f32", "i32", -2.7), -2);
  EXPECT_EQ(convert("i32", "f32", 7), 7);
  EXPECT_EQ(convert("f32", "i1", 0.5), 1);
  // Narrowing does not round here.
  EXPECT_EQ(convert("f32", "bf16", 1.0009765625), 1.0009765625);
}

TEST_F(EvaluateOpTest, DotGeneral) {
  // [[1, 2], [3, 4]] x [[5, 6], [7, 8]].
  Tensor a = make({2, 2}, {1, 2, 3, 4}), b = make({2, 2}, {5, 6, 7, 8});
  std::vector<std::string> types(2, "tensor<2x2xf32>");
  std::string text = " : tensor<2x2xf32>, tensor<2x2xf32> -> ";
  EXPECT_EQ(evaluate("dot_general %0, %1 contracting = [1] x [0]" + text +
                         "tensor<2x2xf32>",
                     types, {a, b})
                .data,
            (Elements{19, 22, 43, 50}));
  // By columns of the first and rows of the second.
  EXPECT_EQ(
      evaluate("dot_general %0, %1 contracting = [0] x [1]" + text +
                   "tensor<2x2xf32>",
               types, {a, b})
          .data,
      (Elements{1 * 5 + 3 * 6, 1 * 7 + 3 * 8, 2 * 5 + 4 * 6, 2 * 7 + 4 * 8}));
  EXPECT_EQ(evaluate("dot_general %0, %1 batching = [0] x [0] contracting = "
                     "[1] x [1]" +
                         text + "tensor<2xf32>",
                     types, {a, b})
                .data,
            (Elements{1 * 5 + 2 * 6, 3 * 7 + 4 * 8}));
  EXPECT_EQ(evaluate("dot_general %0, %1 contracting = [0, 1] x [0, 1]" + text +
                         "tensor<f32>",
                     types, {a, b})
                .data,
            (Elements{5 + 12 + 21 + 32}));
}

TEST_F(EvaluateOpTest, Shapes) {
  Tensor x = make({2, 3}, {1, 2, 3, 4, 5, 6});
  std::string type = "tensor<2x3xf32>";
  EXPECT_EQ(evaluate("transpose %0 permutation = [1, 0] : " + type +
                         " -> tensor<3x2xf32>",
                     {type}, {x})
                .data,
            (Elements{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(
      evaluate("reshape %0 : " + type + " -> tensor<6xf32>", {type}, {x}).data,
      x.data);
  EXPECT_EQ(evaluate("broadcast %0 dims = [1] : tensor<2xf32> -> "
                     "tensor<3x2xf32>",
                     {"tensor<2xf32>"}, {make({2}, {7, 8})})
                .data,
            (Elements{7, 8, 7, 8, 7, 8}));
  EXPECT_EQ(evaluate("broadcast %0 dims = [0] : tensor<2xf32> -> "
                     "tensor<2x2xf32>",
                     {"tensor<2xf32>"}, {make({2}, {7, 8})})
                .data,
            (Elements{7, 7, 8, 8}));
  EXPECT_EQ(evaluate("reduce sum %0 dims = [0] : " + type + " -> tensor<3xf32>",
                     {type}, {x})
                .data,
            (Elements{5, 7, 9}));
  EXPECT_EQ(evaluate("reduce max %0 dims = [1] : " + type + " -> tensor<2xf32>",
                     {type}, {x})
                .data,
            (Elements{3, 6}));
  EXPECT_EQ(
      evaluate("reduce sum %0 dims = [0, 1] : " + type + " -> tensor<f32>",
               {type}, {x})
          .data,
      (Elements{21}));
}

TEST_F(EvaluateOpTest, Constants) {
  EXPECT_EQ(
      evaluate("constant dense<[1.5, -2.0]> : tensor<2xbf16>", {}, {}).data,
      (Elements{1.5, -2}));
  EXPECT_EQ(evaluate("constant dense<-3> : tensor<2xi32>", {}, {}).data,
            (Elements{-3, -3}));
  EXPECT_EQ(evaluate("constant dense<true> : tensor<i1>", {}, {}).data,
            (Elements{1}));
}

TEST_F(EvaluateOpTest, ConstantsThatCannotBeRead) {
  parse("func.func @f() {\n %r = shardc.constant dense_resource<blob> : "
        "tensor<2xf32>\n return\n}\n{-# dialect_resources: { builtin: { blob: "
        "\"0x040000000000803F00000040\" } } #-}");
  std::string said;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) { said = diagnostic.str(); });
  EXPECT_TRUE(
      failed(evaluateOp(find<ConstantOp>(), {}, Devices(MeshAxes()), 0)));
  EXPECT_EQ(said, "'shardc.constant' op has a value that the reference "
                  "interpreter cannot read: expected dense<...>");
}

TEST_F(EvaluateOpTest, GlobalIndices) {
  // Device 4 has a=1, b=1.
  EXPECT_EQ(evaluate("iota dim = 1 : tensor<2x3xi32>", {}, {}, 4).data,
            (Elements{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(evaluate("iota dim = 0 shard = <@mesh, [{\"b\", \"a\"}]> : "
                     "tensor<2xf32>",
                     {}, {}, 4)
                .data,
            (Elements{6, 7}));
  EXPECT_EQ(evaluate("mask %0 dims = [0] fill = 9.0 shard = <@mesh, [{\"b\"}, "
                     "{\"a\"}]> global_shape = [5, 3] : tensor<2x2xf32>",
                     {"tensor<2x2xf32>"}, {make({2, 2}, {1, 2, 3, 4})}, 5)
                .data,
            (Elements{1, 2, 9, 9}));
}

TEST_F(EvaluateOpTest, RandomNumbersFollowGlobalIndices) {
  std::vector<std::string> step = {"tensor<i32>"};
  auto get = [&](const std::string &text, double at, int64_t device) {
    return evaluate("random_uniform %0 stream = 1" + text, step,
                    {make({}, {at})}, device);
  };
  Tensor all = get(" : tensor<i32> -> tensor<3x4xf32>", 2, 0);
  for (double element : all.data) {
    EXPECT_GE(element, 0);
    EXPECT_LT(element, 1);
  }
  EXPECT_NE(all.data, get(" : tensor<i32> -> tensor<3x4xf32>", 3, 0).data);
  std::string shard = " shard = <@mesh, [{\"b\"}, {\"a\"}]> global_shape = "
                      "[3, 4] : tensor<i32> -> tensor<1x2xf32>";
  // Device 5 has a=1, b=2: the right half of the last row.
  EXPECT_EQ(get(shard, 2, 5).data, (Elements{all.data[10], all.data[11]}));
}

TEST_F(EvaluateOpTest, RowsOfMicrobatches) {
  // Of every six rows the second two.
  std::string iota = "iota dim = 0 microbatch = [3, 2] : tensor<4xf32>";
  EXPECT_EQ(evaluate(iota, {}, {}, 0, {1}).data, (Elements{2, 3, 8, 9}));
  int64_t rows[] = {5, 0, 7, 1};
  EXPECT_EQ(evaluate(iota, {}, {}, 0, {1, rows}).data, (Elements{5, 0, 7, 1}));
  Tensor step = make({}, {1});
  Tensor all = evaluate("random_uniform %0 stream = 1 : tensor<i32> -> "
                        "tensor<4x2xf32>",
                        {"tensor<i32>"}, {step});
  EXPECT_EQ(evaluate("random_uniform %0 stream = 1 microbatch = [2, 1] : "
                     "tensor<i32> -> tensor<2x2xf32>",
                     {"tensor<i32>"}, {step}, 0, {1})
                .data,
            (Elements{all.data[2], all.data[3], all.data[6], all.data[7]}));
}

} // namespace
