//===- ShardingRulesTest.cpp - Sharding rules against their ops -----------===//
//
// Checks rules op by op, and for random reshapes that sharding along any factor
// that the rule allows, by blocks, and along its major ones where it has some,
// gives each device the elements of its block of the result.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Builders.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace shardc;

namespace {

class ShardingRulesTest : public ::testing::Test {
protected:
  ShardingRulesTest() : builder(&context) {
    context.loadDialect<ShardcDialect, func::FuncDialect>();
    module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToStart(module->getBody());
  }

  RankedTensorType tensor(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  Value value(ArrayRef<int64_t> shape) {
    return constantSplat(builder, builder.getUnknownLoc(), tensor(shape), 1);
  }
  static ShardingRule ruleOf(Value value) {
    return cast<ShardingRuleOpInterface>(value.getDefiningOp())
        .getShardingRule();
  }

  /// "0,1" or, for a dimension of several factors, "0,(1 2)".
  static std::string toString(const ShardingRule::TensorFactors &dims) {
    std::string text;
    for (const ShardingRule::DimFactors &dim : dims) {
      text += text.empty() ? "" : ",";
      std::string factors;
      for (int factor : dim)
        factors += (factors.empty() ? "" : " ") + std::to_string(factor);
      text += dim.size() == 1 ? factors : "(" + factors + ")";
    }
    return text;
  }

  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
};

TEST_F(ShardingRulesTest, DotGeneral) {
  auto op = builder.create<DotGeneralOp>(
      builder.getUnknownLoc(), tensor({3, 4, 2}), value({8, 3, 4}),
      value({3, 2, 8}), ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0},
      ArrayRef<int64_t>{0}, ArrayRef<int64_t>{2});
  ShardingRule rule = op.getShardingRule();
  ASSERT_EQ(rule.factors.size(), 4u);
  EXPECT_EQ(toString(rule.operands[0]), "3,0,1");
  EXPECT_EQ(toString(rule.operands[1]), "0,2,3");
  EXPECT_EQ(toString(rule.results[0]), "0,1,2");
  EXPECT_EQ(rule.factors[3].kind, FactorKind::Sum);
  EXPECT_EQ(rule.factors[3].size, 8);
  EXPECT_EQ(rule.factors[0].kind, FactorKind::Parallel);
  EXPECT_EQ(rule.partial, PartialRule::Multilinear);
}

TEST_F(ShardingRulesTest, Reduce) {
  ShardingRule rule =
      ruleOf(shardc::reduce(builder, builder.getUnknownLoc(),
                            ReductionKind::Max, value({4, 5, 6}), {1}));
  EXPECT_EQ(toString(rule.operands[0]), "0,2,1");
  EXPECT_EQ(toString(rule.results[0]), "0,1");
  EXPECT_EQ(rule.factors[2].kind, FactorKind::Max);
  EXPECT_EQ(rule.partial, PartialRule::Never);
}

TEST_F(ShardingRulesTest, Broadcast) {
  ShardingRule rule = ruleOf(broadcastTo(builder, builder.getUnknownLoc(),
                                         value({5}), tensor({4, 5}), {1}));
  EXPECT_EQ(toString(rule.operands[0]), "1");
  EXPECT_EQ(toString(rule.results[0]), "0,1");
  EXPECT_EQ(rule.partial, PartialRule::Additive);
}

TEST_F(ShardingRulesTest, OnlyWholeDimensionsOfMovesShard) {
  Location loc = builder.getUnknownLoc();
  Value slice = builder.create<ExtractSliceOp>(
      loc, tensor({4, 3, 6}), value({4, 8, 6}), ArrayRef<int64_t>{0, 1, 0},
      ArrayRef<int64_t>{1, 2, 1});
  ShardingRule rule = ruleOf(slice);
  EXPECT_EQ(toString(rule.operands[0]), "0,2,3");
  EXPECT_EQ(toString(rule.results[0]), "0,1,3");
  EXPECT_EQ(rule.factors[0].kind, FactorKind::Parallel);
  EXPECT_EQ(rule.factors[1].kind, FactorKind::Whole);
  EXPECT_EQ(rule.factors[1].size, 3);
  EXPECT_EQ(rule.factors[2].kind, FactorKind::Whole);
  EXPECT_EQ(rule.factors[2].size, 8);
  EXPECT_EQ(rule.partial, PartialRule::Additive);

  auto pad = [&](double fill) {
    return ruleOf(builder.create<PadOp>(
        loc, tensor({7, 6}), value({4, 6}), ArrayRef<int64_t>{0, 0},
        ArrayRef<int64_t>{1, 0}, APFloat(fill)));
  };
  EXPECT_EQ(toString(pad(0).operands[0]), "1,2");
  EXPECT_EQ(toString(pad(0).results[0]), "0,2");
  EXPECT_EQ(pad(0).factors[0].kind, FactorKind::Whole);
  EXPECT_EQ(pad(0).partial, PartialRule::Additive);
  EXPECT_EQ(pad(1).partial, PartialRule::Never);

  ShardingRule joined = ruleOf(builder.create<ConcatenateOp>(
      loc, tensor({4, 10}), ValueRange{value({4, 8}), value({4, 2})}, 1));
  EXPECT_EQ(toString(joined.operands[0]), "0,2");
  EXPECT_EQ(toString(joined.operands[1]), "0,3");
  EXPECT_EQ(toString(joined.results[0]), "0,1");
  EXPECT_EQ(joined.factors[3].kind, FactorKind::Whole);
}

TEST_F(ShardingRulesTest, RowsMoveOneByOne) {
  ShardingRule rule = ruleOf(builder.create<PermuteRowsOp>(
      builder.getUnknownLoc(), tensor({2, 3}), value({2, 3}), 1,
      ArrayRef<int64_t>{2, 0, 1}));
  EXPECT_EQ(toString(rule.operands[0]), "0,1");
  EXPECT_EQ(toString(rule.results[0]), "0,1");
  EXPECT_FALSE(rule.factors[0].oneEach);
  EXPECT_TRUE(rule.factors[1].oneEach);
  EXPECT_TRUE(rule.needsBlocks);
  EXPECT_EQ(rule.partial, PartialRule::Additive);
}

TEST_F(ShardingRulesTest, LinearityOfElementwise) {
  Value x = value({4}), y = value({4});
  Location loc = builder.getUnknownLoc();
  auto partialOf = [](Value value) { return ruleOf(value).partial; };
  EXPECT_EQ(partialOf(builder.create<AddOp>(loc, x, y)), PartialRule::Additive);
  EXPECT_EQ(partialOf(builder.create<MulOp>(loc, x, y)),
            PartialRule::Multilinear);
  EXPECT_EQ(partialOf(builder.create<DivOp>(loc, x, y)),
            PartialRule::FirstOperand);
  EXPECT_EQ(partialOf(builder.create<ExpOp>(loc, x)), PartialRule::Never);
  // Only widening keeps the sum of the parts.
  auto narrow = tensor({4}).clone(builder.getBF16Type());
  Value narrowed = builder.create<ConvertOp>(loc, narrow, x);
  EXPECT_EQ(partialOf(narrowed), PartialRule::Never);
  EXPECT_EQ(partialOf(builder.create<ConvertOp>(loc, tensor({4}), narrowed)),
            PartialRule::Additive);
}

TEST_F(ShardingRulesTest, OnlySplatConstantsShard) {
  EXPECT_EQ(ruleOf(value({4})).factors[0].kind, FactorKind::Parallel);
  auto elements =
      DenseElementsAttr::get(tensor({2}), ArrayRef<float>{1.0f, 2.0f});
  Value mixed = builder.create<ConstantOp>(builder.getUnknownLoc(), tensor({2}),
                                           cast<ElementsAttr>(elements));
  EXPECT_EQ(ruleOf(mixed).factors[0].kind, FactorKind::Whole);
}

/// Linear index of element `index` of a tensor of `shape`.
int64_t linearize(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    linear = linear * shape[dim] + index[dim];
  return linear;
}

/// By factor the number of its parts, and which of them a device has.
struct Share {
  int64_t parts = 1;
  int64_t part = 0;
};

/// Linear indices, in row-major order, of what a device has of `shape`: of a
/// dimension the block that its shares of the dimension's factors name.
std::vector<int64_t> blockOf(ArrayRef<int64_t> shape,
                             const ShardingRule::TensorFactors &dims,
                             const ShardingRule &rule, ArrayRef<Share> shares) {
  std::vector<int64_t> linear;
  SmallVector<int64_t> index(shape.size(), 0);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  for (int64_t element = 0; element < count; ++element) {
    int64_t rest = element;
    bool inside = true;
    for (size_t dim = shape.size(); dim-- > 0; rest /= shape[dim]) {
      index[dim] = rest % shape[dim];
      int64_t parts = 1, part = 0;
      for (int factor : dims[dim])
        if (rule.factors[factor].kind != FactorKind::Whole) {
          parts *= shares[factor].parts;
          part = part * shares[factor].parts + shares[factor].part;
        }
      int64_t block = (shape[dim] + parts - 1) / parts;
      inside &= index[dim] / block == part;
    }
    if (inside)
      linear.push_back(linearize(shape, index));
  }
  return linear;
}

TEST_F(ShardingRulesTest, ReshapesMapBlocksToBlocks) {
  std::mt19937 random(7);
  int64_t sharded = 0, shardedBehind = 0;
  for (int round = 0; round < 400; ++round) {
    // Two ways of grouping the same prime factors, or two orders of them.
    SmallVector<int64_t> primes;
    for (int i = 0; i < 4; ++i)
      primes.push_back(random() % 4 == 0 ? 1 : 2 + random() % 2);
    auto group = [&](bool shuffled) {
      SmallVector<int64_t> parts(primes), shape;
      if (shuffled)
        std::shuffle(parts.begin(), parts.end(), random);
      for (int64_t part : parts)
        if (!shape.empty() && random() % 2)
          shape.back() *= part;
        else
          shape.push_back(part);
      return shape;
    };
    SmallVector<int64_t> from = group(false), to = group(round % 3 == 0);
    auto op = builder.create<ReshapeOp>(builder.getUnknownLoc(), tensor(to),
                                        value(from));
    ShardingRule rule = op.getShardingRule();
    ASSERT_EQ(rule.operands[0].size(), from.size());
    ASSERT_EQ(rule.results[0].size(), to.size());
    auto productsAgree = [&](const ShardingRule::TensorFactors &dims,
                             ArrayRef<int64_t> shape) {
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        int64_t product = 1;
        for (int factor : dims[dim])
          product *= rule.factors[factor].size;
        EXPECT_EQ(product, shape[dim]);
      }
    };
    productsAgree(rule.operands[0], from);
    productsAgree(rule.results[0], to);

    for (size_t factor = 0; factor < rule.factors.size(); ++factor) {
      if (rule.factors[factor].kind == FactorKind::Whole)
        continue;
      for (int64_t parts : {2, 3}) {
        if (rule.factors[factor].mustDivide &&
            rule.factors[factor].size % parts != 0)
          continue;
        bool inOperand = llvm::any_of(rule.operands[0], [&](const auto &dim) {
          return llvm::is_contained(dim, static_cast<int>(factor));
        });
        if (!inOperand)
          continue; // A new dimension of size 1.
        // Devices have one index of each factor before it.
        SmallVector<Share> shares(rule.factors.size());
        bool isBehindWhole = false;
        for (int major = rule.factors[factor].major; major >= 0;
             major = rule.factors[major].major) {
          int64_t size = rule.factors[major].size;
          shares[major] = {size, static_cast<int64_t>(random() % size)};
          isBehindWhole |= rule.factors[major].kind == FactorKind::Whole;
        }
        if (isBehindWhole)
          continue;
        for (int64_t part = 0; part < parts; ++part) {
          shares[factor] = {parts, part};
          EXPECT_EQ(blockOf(from, rule.operands[0], rule, shares),
                    blockOf(to, rule.results[0], rule, shares));
        }
        ++(rule.factors[factor].major < 0 ? sharded : shardedBehind);
      }
    }
  }
  EXPECT_GT(shardedBehind, 100);
  EXPECT_GT(sharded, 400);
}

} // namespace
