//===- RandomGraph.h - Small random problems --------------------*- C++ -*-===//
//
// Graphs of a few ops on meshes of one to three axes with random annotations,
// small enough to try all plans.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_ANALYSIS_RANDOMGRAPH_H
#define SHARDC_TEST_UNIT_ANALYSIS_RANDOMGRAPH_H

#include "shardc/AutoSharding/SearchProblem.h"

#include <random>

namespace shardc {

/// Builds a graph of a few ops over values of small, mostly even sizes.
class RandomGraph {
public:
  explicit RandomGraph(unsigned seed) : random(seed) {
    static const MeshAxes meshes[] = {
        MeshAxes({{"a", 2}}),
        MeshAxes({{"a", 4}}),
        MeshAxes({{"a", 2}, {"b", 2}}),
        MeshAxes({{"a", 3}, {"b", 2}}),
        MeshAxes({{"a", 2}, {"b", 2}, {"c", 2}}),
    };
    graph.mesh = meshes[pick(5)];
    int64_t rank = pick(3) ? 2 : 1;
    std::vector<int> values = {argument(shape(rank)), argument(shape(rank))};
    int numOps = 1 + pick(3);
    for (int op = 0; op < numOps; ++op)
      values.push_back(addOp(values));
    addReturn(values.back(), -1);
    // One argument is replaced by a value of its shape, if there is one.
    for (size_t value = 2; value < values.size(); ++value)
      if (graph.values[values[value]].shape == graph.values[values[0]].shape) {
        addReturn(values[value], values[0]);
        break;
      }
  }

  ShardingGraph graph;

private:
  int pick(int n) { return random() % n; }

  int64_t size() {
    static const int64_t sizes[] = {8, 24, 16, 48, 6, 5};
    return sizes[pick(6)];
  }

  llvm::SmallVector<int64_t> shape(int64_t rank) {
    llvm::SmallVector<int64_t> shape;
    for (int64_t dim = 0; dim < rank; ++dim)
      shape.push_back(size());
    return shape;
  }

  int value(llvm::ArrayRef<int64_t> shape) {
    GraphValue value;
    value.shape.assign(shape.begin(), shape.end());
    value.dims.resize(shape.size());
    graph.values.push_back(value);
    return graph.values.size() - 1;
  }

  /// Puts some axes on dimensions and closes some.
  void annotate(GraphValue &value) {
    std::vector<int> axes;
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
      axes.push_back(axis);
    std::shuffle(axes.begin(), axes.end(), random);
    for (int axis : axes)
      if (int place = pick(value.dims.size() + 1);
          place < static_cast<int>(value.dims.size()))
        value.dims[place].axes.push_back(axis);
    for (GraphDim &dim : value.dims)
      dim.isClosed = pick(4) != 0;
  }

  int argument(llvm::ArrayRef<int64_t> shape) {
    int id = value(shape);
    graph.values[id].isStored = true;
    annotate(graph.values[id]);
    return id;
  }

  void addReturn(int operand, int result) {
    GraphOp op;
    op.kind = GraphOp::Return;
    op.rule = getIdentityRule(graph.values[operand].shape);
    if (result < 0) {
      result = value(graph.values[operand].shape);
      annotate(graph.values[result]);
    }
    op.operands = {operand};
    op.results = {result};
    graph.ops.push_back(op);
  }

  int add(GraphOp op, llvm::ArrayRef<int> operands,
          llvm::ArrayRef<int64_t> shape) {
    op.operands.assign(operands.begin(), operands.end());
    op.results = {value(shape)};
    graph.ops.push_back(op);
    return op.results[0];
  }

  int addOp(llvm::ArrayRef<int> values) {
    int lhs = values[pick(values.size())];
    llvm::SmallVector<int64_t> shape = graph.values[lhs].shape;
    GraphOp op;
    if (shape.size() == 2 && pick(2)) {
      // A GEMM with a fresh matrix, or one of a known column count.
      int rhs = -1;
      for (int value : values)
        if (graph.values[value].shape.size() == 2 &&
            graph.values[value].shape[0] == shape[1] && pick(2))
          rhs = value;
      if (rhs < 0)
        rhs = argument({shape[1], size()});
      int64_t columns = graph.values[rhs].shape[1];
      op.rule.factors = {{shape[0]}, {columns}, {shape[1], FactorKind::Sum}};
      op.rule.operands = {{{0}, {2}}, {{2}, {1}}};
      op.rule.results = {{{0}, {1}}};
      op.rule.partial = PartialRule::Multilinear;
      return add(op, {lhs, rhs}, {shape[0], columns});
    }
    if (shape.size() == 2 && pick(3) == 0) {
      bool isMax = pick(4) == 0;
      op.rule.factors = {{shape[1]},
                         {shape[0], isMax ? FactorKind::Max : FactorKind::Sum}};
      op.rule.operands = {{{1}, {0}}};
      op.rule.results = {{{0}}};
      op.rule.partial = isMax ? PartialRule::Never : PartialRule::Additive;
      return add(op, {lhs}, {shape[1]});
    }
    op.rule = getIdentityRule(shape);
    int rhs = -1;
    for (int value : values)
      if (graph.values[value].shape == shape && pick(2))
        rhs = value;
    if (rhs < 0) {
      op.rule.partial = pick(2) ? PartialRule::Never : PartialRule::Additive;
      return add(op, {lhs}, shape);
    }
    op.rule.operands.push_back(op.rule.operands[0]);
    static const PartialRule rules[] = {
        PartialRule::Additive, PartialRule::Multilinear,
        PartialRule::FirstOperand, PartialRule::Never};
    op.rule.partial = rules[pick(4)];
    return add(op, {lhs, rhs}, shape);
  }

  std::mt19937 random;
};

/// Work of random cost for all ops, in one or two parts of the step.
inline void addWork(ShardingGraph &graph, std::mt19937 &random) {
  size_t split = random() % (2 * graph.ops.size());
  for (auto [index, op] : llvm::enumerate(graph.ops)) {
    op.part = index >= split ? Part::Backward : Part::Forward;
    if (op.kind != GraphOp::Compute)
      continue;
    op.seconds.perPoint = random() % 2 * 0.25;
    for (size_t tensor = 0; tensor < op.operands.size() + op.results.size();
         ++tensor)
      op.seconds.perElement.push_back(random() % 3);
  }
}

/// A graph with work, and costs by time with latencies.
struct TimedGraph {
  explicit TimedGraph(unsigned seed) : builder(seed) {
    std::mt19937 random(seed);
    addWork(builder.graph, random);
    for (GraphOp &op : builder.graph.ops)
      op.part = Part::Update;
    Machine machine;
    machine.defaultLink = {1.0 / (1 + random() % 4), double(random() % 4) * 40};
    collectiveCosts = CollectiveCosts(builder.graph.mesh, machine);
  }

  RandomGraph builder;
  CollectiveCosts collectiveCosts;
};

/// All of `graph` as one problem.
inline SearchProblem makeProblem(const ShardingGraph &graph,
                                 const CollectiveCosts &collectiveCosts,
                                 double memoryPrice = 0) {
  return SearchProblem(graph, 0, graph.ops.size(), collectiveCosts, {}, nullptr,
                       memoryPrice);
}

} // namespace shardc

#endif // SHARDC_TEST_UNIT_ANALYSIS_RANDOMGRAPH_H
