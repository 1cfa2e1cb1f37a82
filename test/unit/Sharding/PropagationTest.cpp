//===- PropagationTest.cpp - Following annotations, without IR ------------===//

#include "shardc/Sharding/Propagation.h"
#include "shardc/Sharding/PartialSums.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

/// Builds graphs of GEMMs and sums.
class GraphBuilder {
public:
  explicit GraphBuilder(llvm::ArrayRef<std::pair<std::string, int64_t>> axes) {
    graph.mesh = MeshAxes(axes);
  }

  int value(llvm::ArrayRef<int64_t> shape) {
    GraphValue value;
    value.shape.assign(shape.begin(), shape.end());
    value.dims.resize(shape.size());
    graph.values.push_back(value);
    return graph.values.size() - 1;
  }

  int annotated(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<AxisList> dims,
                AnnotationClass annotationClass, int64_t priority = 0) {
    int id = value(shape);
    GraphValue &value = graph.values[id];
    value.annotationClass = annotationClass;
    value.isStored = true;
    for (auto [dim, axes] : llvm::zip_equal(value.dims, dims))
      dim = {axes, true, priority};
    return id;
  }

  int matmul(int lhs, int rhs) {
    int64_t m = graph.values[lhs].shape[0], k = graph.values[lhs].shape[1],
            n = graph.values[rhs].shape[1];
    GraphOp op;
    op.rule.factors = {{m}, {n}, {k, FactorKind::Sum}};
    op.rule.operands = {{{0}, {2}}, {{2}, {1}}};
    op.rule.results = {{{0}, {1}}};
    op.rule.partial = PartialRule::Multilinear;
    return add(op, {lhs, rhs}, {m, n});
  }

  int elementwise(llvm::ArrayRef<int> operands, PartialRule partial) {
    llvm::SmallVector<int64_t> shape = graph.values[operands[0]].shape;
    GraphOp op;
    op.rule = getIdentityRule(shape);
    op.rule.operands.assign(operands.size(), op.rule.results[0]);
    op.rule.partial = partial;
    return add(op, operands, shape);
  }

  std::vector<AxisSet> findPartial(Propagation &propagation) {
    std::vector<FactorAxes> factors;
    std::vector<Layout> layouts;
    for (size_t op = 0; op < graph.ops.size(); ++op)
      factors.push_back(propagation.getFactors(op));
    for (size_t id = 0; id < graph.values.size(); ++id)
      layouts.push_back(propagation.getLayout(id));
    std::vector<AxisSet> axes;
    for (PartialAxes partial : findPartialSums(graph, factors, layouts))
      axes.push_back(partial.all());
    return axes;
  }

  ShardingGraph graph;

private:
  int add(GraphOp op, llvm::ArrayRef<int> operands,
          llvm::ArrayRef<int64_t> shape) {
    op.operands.assign(operands.begin(), operands.end());
    op.results = {value(shape)};
    graph.ops.push_back(op);
    return op.results[0];
  }
};

using Dims = llvm::SmallVector<AxisList, 2>;

TEST(Propagation, NothingAnnotated) {
  GraphBuilder b({{"d", 4}});
  int result = b.matmul(b.value({8, 8}), b.value({8, 8}));
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_TRUE(propagation.getLayout(result).isReplicated());
}

TEST(Propagation, InputsAreStrongerThanParameters) {
  GraphBuilder b({{"d", 4}});
  int x = b.annotated({32, 16}, {{0}, {}}, AnnotationClass::Input);
  int w = b.annotated({16, 64}, {{0}, {}}, AnnotationClass::Parameter);
  int z = b.matmul(x, w);
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_EQ(propagation.getLayout(z).dims, (Dims{{0}, {}}));
  // The batch has the axis, so the weight is gathered.
  EXPECT_EQ(propagation.getFactors(0), (FactorAxes{{0}, {}, {}}));
}

TEST(Propagation, PriorityIsStrongerThanClass) {
  GraphBuilder b({{"d", 4}});
  int x = b.annotated({32, 16}, {{0}, {}}, AnnotationClass::Input, 1);
  int w = b.annotated({16, 64}, {{}, {0}}, AnnotationClass::Parameter, 0);
  int z = b.matmul(x, w);
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_EQ(propagation.getLayout(z).dims, (Dims{{}, {0}}));
}

TEST(Propagation, StatesDoNotDecideWhereParametersRest) {
  GraphBuilder b({{"d", 4}});
  int w = b.annotated({16, 64}, {{}, {}}, AnnotationClass::Parameter);
  for (GraphDim &dim : b.graph.values[w].dims)
    dim.isClosed = false;
  int m = b.annotated({16, 64}, {{0}, {}}, AnnotationClass::State);
  int sum = b.elementwise({w, m}, PartialRule::Additive);
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_TRUE(propagation.getLayout(w).isReplicated());
  EXPECT_EQ(propagation.getLayout(sum).dims, (Dims{{0}, {}}));
}

TEST(Propagation, GradientsAreMadeWhereParametersRest) {
  // dw = x^T dy, both over the axis along their columns, and w as dy.
  GraphBuilder b({{"t", 4}});
  int x = b.annotated({16, 64}, {{0}, {}}, AnnotationClass::Parameter);
  int dy = b.annotated({64, 16}, {{}, {0}}, AnnotationClass::Parameter);
  int w = b.annotated({16, 16}, {{}, {0}}, AnnotationClass::Parameter);
  int dw = b.matmul(x, dy);
  int next = b.elementwise({w, dw}, PartialRule::Additive);
  b.graph.ops.back().part = Part::Update;
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_EQ(propagation.getLayout(dw).dims, (Dims{{}, {0}}));
  EXPECT_EQ(propagation.getLayout(next).dims, (Dims{{}, {0}}));
  EXPECT_EQ(propagation.getFactors(0), (FactorAxes{{}, {0}, {}}));
}

TEST(Propagation, AxesThatMakeNothingSmallerAreNotSpread) {
  GraphBuilder b({{"d", 4}});
  int x = b.annotated({1, 16}, {{0}, {}}, AnnotationClass::Input);
  int y = b.elementwise({x}, PartialRule::Never);
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_TRUE(propagation.getLayout(y).isReplicated());
}

TEST(PartialSums, AddedBeforeTheyAreReduced) {
  GraphBuilder b({{"t", 4}});
  int a = b.annotated({32, 16}, {{}, {0}}, AnnotationClass::Input);
  int w = b.annotated({16, 8}, {{0}, {}}, AnnotationClass::Parameter);
  int first = b.matmul(a, w), second = b.matmul(a, w);
  int sum = b.elementwise({first, second}, PartialRule::Additive);
  b.elementwise({sum}, PartialRule::Never);
  Propagation propagation(b.graph);
  propagation.run();
  // The addition works on partial sums; its user does not.
  EXPECT_EQ(b.findPartial(propagation), (std::vector<AxisSet>{0, 0, 1, 0}));
}

TEST(PartialSums, ReplicatedTermForcesTheReduction) {
  GraphBuilder b({{"t", 4}});
  int a = b.annotated({32, 16}, {{}, {0}}, AnnotationClass::Input);
  int w = b.annotated({16, 8}, {{0}, {}}, AnnotationClass::Parameter);
  int bias = b.annotated({32, 8}, {{}, {}}, AnnotationClass::Parameter);
  int sum = b.elementwise({b.matmul(a, w), bias}, PartialRule::Additive);
  b.elementwise({sum}, PartialRule::Never);
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_EQ(b.findPartial(propagation), (std::vector<AxisSet>{0, 0, 0}));
}

TEST(PartialSums, SquareOfAPartialSumIsNotOne) {
  GraphBuilder b({{"t", 4}});
  int a = b.annotated({32, 16}, {{}, {0}}, AnnotationClass::Input);
  int w = b.annotated({16, 8}, {{0}, {}}, AnnotationClass::Parameter);
  int z = b.matmul(a, w);
  b.elementwise({z, z}, PartialRule::Multilinear);
  Propagation propagation(b.graph);
  propagation.run();
  EXPECT_EQ(b.findPartial(propagation), (std::vector<AxisSet>{0, 0}));
}

} // namespace
