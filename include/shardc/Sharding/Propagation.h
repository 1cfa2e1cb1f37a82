//===- Propagation.h - Annotations flow through the rules -------*- C++ -*-===//
//
// `--partition=follow`. Each axis on a value has a rank: the user priority,
// then the class of the annotation it came from (constraints, inputs,
// parameters, states). From the strongest rank to the weakest, the annotations
// of a rank are put on their values and flow forward and backward in SSA order
// to a fix-point, in the ops of the update first: these get the layouts in
// which parameters are stored, and gradients are made in them. Decisions of
// stronger ranks stay, closed dimensions do not grow, open ones grow on the
// minor side, and an axis is used once per value. If two factors of an op claim
// the same axis, the stronger rank gets it, then the one that more tensors
// claim it for, then the earlier tensor, then the lower factor. The other
// tensor is resharded there. If it loses an axis before a minor one, a gap
// stays, so that only the lost axis has to be gathered. The result depends only
// on the graph.
//
// Example: z[b,n] = sum over k of x[b,k] w[k,n], with input x as [{"data"}, {}]
// and parameter w as [{"data"}, {"model"}]. The input is stronger: "data" goes
// to factor b and with it to z. The claim of w for k then fails, since "data"
// is used by the op already; "model" goes to n. So z is [{"data"}, {"model"}],
// and w is gathered over "data" at its use and stays sharded over "model".
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_PROPAGATION_H
#define SHARDC_SHARDING_PROPAGATION_H

#include "shardc/Sharding/ShardingGraph.h"

namespace shardc {

/// An axis, or a gap, and its provenance.
struct AxisUse {
  int axis;
  /// Smaller is stronger.
  int64_t rank;
  /// The annotated value.
  int source;
};

class Propagation {
public:
  /// Borrows `graph` for the lifetime of the object.
  explicit Propagation(const ShardingGraph &graph);

  /// Runs to the fix-point.
  void run();

  /// The layout of a value; of an argument the storage sharding.
  Layout getLayout(int value) const;

  /// The axes of each factor of op `op`: every axis of an operand or result
  /// goes to one factor that it makes smaller, if there is one.
  FactorAxes getFactors(int op) const;

  /// The annotated values that the axes of op `op` came from, by axis.
  llvm::SmallVector<AxisUse> getOrigins(int op) const;

private:
  using DimUses = llvm::SmallVector<AxisUse, 2>;
  struct ValueState {
    llvm::SmallVector<DimUses, 2> dims;
    /// Axes on some dimension.
    AxisSet used = 0;
    /// Axes that an annotation will put on some dimension.
    AxisSet reserved = 0;
  };

  int64_t getRank(const GraphValue &value, const GraphDim &dim) const;
  void activate(int64_t rank);
  /// Lets the axes of `rank` flow through the ops that are meant.
  void spread(int64_t rank, llvm::function_ref<bool(const GraphOp &)> isMeant);
  /// Gives every axis that a tensor of the op holds to a factor.
  void resolve(const GraphOp &op,
               llvm::SmallVectorImpl<DimUses> &factors) const;
  /// Lets the axes of the op's factors flow to its tensors; true if any grew.
  bool propagate(const GraphOp &op, int64_t rank);
  /// The number of parts of an axis or a gap, and the product over a list.
  int64_t getParts(int entry) const;
  int64_t getParts(llvm::ArrayRef<AxisUse> uses) const;
  /// Whether the list leaves strided shards, so that its parts must divide.
  static bool hasGap(llvm::ArrayRef<AxisUse> uses);
  bool grow(int value, int64_t dim, const DimUses &goal, int64_t rank);

  const ShardingGraph &graph;
  /// Whether lost axes leave gaps.
  bool allowsStrided;
  std::vector<ValueState> states;
};

} // namespace shardc

#endif // SHARDC_SHARDING_PROPAGATION_H
