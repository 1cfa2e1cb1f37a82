//===- ShardingGraph.h - The input of propagation and search ----*- C++ -*-===//
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

/// The class of an annotation's value; earlier classes are stronger at equal
/// user priority.
enum class AnnotationClass { Constraint, Input, Parameter, State };

/// The annotation of one dimension. Without one: open and no axes.
struct GraphDim {
  AxisList axes;
  bool isClosed = false;
  /// User priority, 0 the strongest.
  int64_t priority = 0;
};

/// A tensor. Arguments with one stored tensor or storage sharding (a parameter
/// in two programs, a state that inherits its parameter's sharding) are one
/// value.
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
  /// It is an argument, stored between steps: annotations of its own class or
  /// stronger ones decide its storage sharding.
  bool isStored = false;
  /// It is a function's result and no argument.
  bool isResult = false;
  /// The value whose layout this one shares; -1: none. Such a value is an
  /// argument besides another one of that layout and only occurs among
  /// `tensors` of ops.
  int storedAs = -1;
  /// The number of times that a step reshards it, if it does: once per run of
  /// the loop that makes it, and once if it is a sum over the loop.
  int64_t repeats = 1;
  /// For messages.
  std::string name;
};

/// The cost of an op on a device, by its local sizes, in the unit of the
/// objective: seconds, or for transfers between stages bytes. Zero if it does
/// not count.
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
    /// Ties a returned value to the layout of its result.
    Return,
  };
  Kind kind = Compute;
  ShardingRule rule;
  llvm::SmallVector<int, 2> operands;
  llvm::SmallVector<int, 1> results;
  /// The operands as tensors that are moved: arguments that share a storage
  /// sharding, and are one operand, are tensors of their own. Empty: the
  /// operands.
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
  /// For every operand that may be partial; for a multilinear op, for the first
  /// operand.
  AxisSet operands = 0;
  /// For the second operand of a multilinear op.
  AxisSet rhs = 0;
  AxisSet all() const { return operands | rhs; }
};

/// The sharding strategy of one op: the layouts of its operands and results
/// follow from this and its rule.
struct ShardingStrategy {
  FactorAxes factors;
  PartialAxes partial;
};

/// The first factor by which a dimension made of `factors` may be sharded: its
/// major one, or -1 if there is none.
int getShardedFactor(const ShardingRule &rule,
                     const ShardingRule::DimFactors &factors);

/// Whether `factor` may be sharded beside `axes` of the other factors, by its
/// major one (see Factor::major).
bool followsMajor(const Factor &factor, const ShardingRule &rule,
                  llvm::ArrayRef<AxisList> axes, const MeshAxes &mesh);

/// Axes of factors of kind `kind`.
AxisSet getAxesOf(const ShardingRule &rule, const FactorAxes &factors,
                  FactorKind kind);

/// The layout of a tensor whose dimensions are made of `dims`.
Layout getTensorLayout(const ShardingRule &rule,
                       const ShardingRule::TensorFactors &dims,
                       const FactorAxes &factors);

/// The layout in which an op with `rule` and `strategy` reads operand `index`.
Layout getOperandLayout(const ShardingRule &rule,
                        const ShardingStrategy &strategy, int index);

/// The layout in which it produces result `index`.
Layout getResultLayout(const ShardingRule &rule,
                       const ShardingStrategy &strategy, int index);

/// Seconds of a device for `op` of `graph` with `strategy`, padding included.
double getSeconds(const ShardingGraph &graph, const GraphOp &op,
                  const ShardingStrategy &strategy);

/// Bytes of the operands and results of `op` on a device, with `strategy`.
int64_t getMemory(const ShardingGraph &graph, const GraphOp &op,
                  const ShardingStrategy &strategy);

/// By value of `graph` the part of the step in which it is made; for one that
/// no op makes, the part that uses it first.
std::vector<Part> getPartsMadeIn(const ShardingGraph &graph);

/// The identity on a tensor of `shape`.
ShardingRule getIdentityRule(llvm::ArrayRef<int64_t> shape);

} // namespace shardc

#endif // SHARDC_SHARDING_SHARDINGGRAPH_H
