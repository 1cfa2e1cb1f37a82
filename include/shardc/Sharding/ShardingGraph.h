//===- ShardingGraph.h - What a partitioner decides about -------*- C++ -*-===//
//
// A program as partitioners see it: values with shapes and annotations, ops
// with sharding rules, in SSA order. It holds no IR, so that propagation, the
// analysis of partial sums and any other planner can be driven by tests, and
// both programs of a module (train step and evaluation) are one graph.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_SHARDINGGRAPH_H
#define SHARDC_SHARDING_SHARDINGGRAPH_H

#include "shardc/Sharding/Layout.h"
#include "shardc/Sharding/ShardingRule.h"

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
  /// Of a constraint: axes over which it may be a partial sum.
  AxisSet unreduced = 0;
  AnnotationClass annotationClass = AnnotationClass::Constraint;
  /// It is an argument: where it rests is decided by annotations of its own
  /// class or stronger ones.
  bool isAtRest = false;
  /// It is what a function returns and no argument.
  bool isResult = false;
  /// The value whose layout this one shares; -1: none. Such a value is an
  /// argument besides another one of that layout and only occurs among
  /// `tensors` of ops.
  int restsAs = -1;
  /// How many times a step reshards it if it has to: once per run of the loop
  /// that makes it, and once if it is what the loop sums up.
  int64_t repeats = 1;
  /// For messages.
  std::string name;
};

/// What an op takes a device, by the sizes that it works on there. All zero
/// where time does not count.
struct OpSeconds {
  /// Per element of its iteration space: the product of its factors' sizes.
  double perPoint = 0;
  /// Per element of each operand, and then of each result; or empty.
  llvm::SmallVector<double, 3> perElement;
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
  /// The operands as tensors that are moved: of arguments that rest alike, and
  /// are one operand, each is a tensor of its own. Empty: the operands.
  llvm::SmallVector<int, 2> tensors = {};
  Part part = Part::Forward;
  /// In all of its runs.
  OpSeconds seconds = {};

  /// The operands as tensors that are moved.
  llvm::ArrayRef<int> getTensors() const {
    return tensors.empty() ? operands : tensors;
  }
};

struct ShardingGraph {
  MeshAxes mesh;
  std::vector<GraphValue> values;
  std::vector<GraphOp> ops;
};

/// Axes per factor of one op.
using FactorAxes = llvm::SmallVector<AxisList, 3>;

/// The axes over which an op works on partial sums.
struct PartialAxes {
  /// Of every operand that may be partial; of the first one of an op that is
  /// multilinear.
  AxisSet operands = 0;
  /// Of the second factor of a multilinear op.
  AxisSet rhs = 0;
  AxisSet all() const { return operands | rhs; }
};

/// How one op is sharded: the layouts of its operands and results follow from
/// this and its rule.
struct Assignment {
  FactorAxes factors;
  PartialAxes partial;
};

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

/// The layout in which an op with `rule`, sharded as `assignment` says, wants
/// operand `index`.
Layout getOperandLayout(const ShardingRule &rule, const Assignment &assignment,
                        int index);

/// The layout in which it makes result `index`.
Layout getResultLayout(const ShardingRule &rule, const Assignment &assignment,
                       int index);

/// Seconds that a device takes for `op` of `graph`, sharded as `assignment`
/// says, padding included.
double getSeconds(const ShardingGraph &graph, const GraphOp &op,
                  const Assignment &assignment);

/// Bytes of the tensors that `op`, sharded as `assignment` says, works on on a
/// device: its operands and results.
int64_t getMemory(const ShardingGraph &graph, const GraphOp &op,
                  const Assignment &assignment);

/// By value of `graph` the part of the step in which it is made; for one that
/// no op makes, the part that uses it first.
std::vector<Part> getPartsMadeIn(const ShardingGraph &graph);

/// The identity on a tensor of `shape`.
ShardingRule getIdentityRule(llvm::ArrayRef<int64_t> shape);

} // namespace shardc

#endif // SHARDC_SHARDING_SHARDINGGRAPH_H
