//===- ShardingGraph.h - What a partitioner decides about ------*- C++ -*-===//
//
// A program as partitioners see it: values with shapes and annotations, ops
// with sharding rules, in SSA order. It holds no IR, so that propagation, the
// analysis of partial sums and any other planner can be driven by tests, and
// both programs of a module (train step and evaluation) are one graph.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_SHARDINGGRAPH_H
#define SHARDC_ANALYSIS_SHARDINGGRAPH_H

#include "shardc/Analysis/Layout.h"
#include "shardc/Dialect/Shardc/IR/ShardingRule.h"

#include <string>
#include <vector>

namespace shardc {

/// Whose annotation it is; earlier ones are stronger at equal user priority.
enum class AnnotationClass { Constraint, Input, Parameter, State };

/// The annotation of one dimension. Without one: open and no axes.
struct GraphDim {
  AxisList axes;
  bool isClosed = false;
  /// User priority, 0 the strongest.
  int64_t priority = 0;
};

/// A tensor. Arguments that are the same tensor at rest (a parameter in two
/// programs, a state that inherits its parameter's sharding) are one value.
struct GraphValue {
  llvm::SmallVector<int64_t> shape;
  int64_t elementBytes = 4;
  /// One entry per dimension.
  llvm::SmallVector<GraphDim, 2> dims;
  /// Axes that may not shard it.
  AxisSet forbidden = 0;
  AnnotationClass annotationClass = AnnotationClass::Constraint;
  /// It is an argument: where it rests is decided by annotations of its own
  /// class or stronger ones.
  bool isAtRest = false;
  /// For messages.
  std::string name;
};

struct GraphOp {
  enum Kind {
    Compute,
    /// The identity with exactly its result's layout.
    Constraint,
    /// Ties what a function returns to the layout of its result.
    Return,
  };
  Kind kind = Compute;
  ShardingRule rule;
  llvm::SmallVector<int, 2> operands;
  llvm::SmallVector<int, 1> results;
};

struct ShardingGraph {
  MeshAxes mesh;
  std::vector<GraphValue> values;
  std::vector<GraphOp> ops;
};

/// Axes per factor of one op.
using FactorAxes = llvm::SmallVector<AxisList, 3>;

/// The factor by which a dimension made of `factors` may be sharded: its major
/// one, or -1 if there is none.
int getShardedFactor(const ShardingRule &rule,
                     const ShardingRule::DimFactors &factors);

/// Axes of factors of kind `kind`.
AxisSet getAxesOf(const ShardingRule &rule, const FactorAxes &factors,
                  FactorKind kind);

/// The layout of a tensor whose dimensions are made of `dims`.
Layout getTensorLayout(const ShardingRule &rule,
                       const ShardingRule::TensorFactors &dims,
                       const FactorAxes &factors);

/// The identity on a tensor of `shape`.
ShardingRule getIdentityRule(llvm::ArrayRef<int64_t> shape);

} // namespace shardc

#endif // SHARDC_ANALYSIS_SHARDINGGRAPH_H
