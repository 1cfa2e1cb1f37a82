//===- LoopBuilder.h - Loops, and code at its outermost level ---*- C++ -*-===//
//
// Builds the loops and conditions of a kernel and computes with places in them.
// Code is built at the outermost level at which its operands are known:
// loop-invariant code comes before the loop. For each level there is a table of
// the values that are known in it, as in value numbering.
//
// Not thread-safe; one per kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_LOOPBUILDER_H
#define SHARDC_CONVERSION_KERNELEMITTER_LOOPBUILDER_H

#include "shardc/Conversion/KernelEmitter/VectorMath.h"

#include <map>
#include <vector>

namespace shardc {

/// The place along one dimension of a tensor.
struct Index {
  /// An i64, the place of lane 0; null means 0.
  mlir::Value value;
  /// Number of loops that `value` depends on.
  unsigned level = 0;
  /// Active lanes, at consecutive places; 0 means a single place.
  int64_t lanes = 0;
  /// The last place that exists, where lanes may reach beyond it; -1: none
  /// does.
  int64_t last = -1;
  /// Where lanes run over two dimensions in row-major order: lane `l` is
  /// (start + l) / repeat places behind lane 0's, modulo `period` unless it is
  /// 0. Eight lanes over the second and third row of three columns have start
  /// 3, and repeat 3 for the rows, period 3 for the columns.
  int64_t start = 0, repeat = 1, period = 0;

  /// Whether lanes are at other places than consecutive ones.
  bool isSpread() const { return start != 0 || repeat != 1 || period != 0; }
  /// How many places a lane is behind `value`.
  int64_t getOffset(int64_t lane) const {
    int64_t offset = (start + lane) / repeat;
    return period == 0 ? offset : offset % period;
  }
};

/// One index per dimension of a tensor.
using IndexList = llvm::SmallVector<Index, 4>;

/// Builds loops and index arithmetic in one kernel function.
class LoopBuilder {
public:
  /// `entry` is the function's first block, where constants are built.
  LoopBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Block *entry);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath math;
  mlir::Block *const entry;

  /// Forgets the known values and open scopes, between nests; vectors have so
  /// many lanes from now on.
  void startNest(int64_t numLanes);

  /// An i64 constant, at the start of the function.
  mlir::Value constantI64(int64_t value);
  Index constantIndex(int64_t value, int64_t lanes = 0);
  /// The place `value`, an i64, of the level of the innermost open scope, so
  /// that values at it are computed inside of that scope. Places in the body of
  /// `buildIf` need it: code of an outer level runs whatever the condition.
  Index makeIndex(mlir::Value value) {
    return Index{value, unsigned(scopes.size()), 0, -1};
  }
  /// index + value, index · value, both of the level of `index`.
  Index addIndex(const Index &index, int64_t value);
  Index mulIndex(const Index &index, int64_t value);
  /// The coordinates of a row-major linear index over `sizes`.
  IndexList delinearize(const Index &linear, llvm::ArrayRef<int64_t> sizes);
  /// The places along a dimension as i64: a scalar, or a vector of lanes.
  mlir::Value getPlaces(const Index &index);

  /// Builds a loop from `low` to `high` by `step`; `body` gets the place and
  /// the carried values, and returns the next ones. Returns the final ones.
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      Index, mlir::ValueRange)>;
  llvm::SmallVector<mlir::Value> buildLoop(mlir::Value low, mlir::Value high,
                                           int64_t step, mlir::ValueRange init,
                                           LoopBody body);
  /// A loop over [0, count) that is left out for a count of 1.
  llvm::SmallVector<mlir::Value>
  buildCountedLoop(int64_t count, mlir::ValueRange init, LoopBody body);
  /// Builds `body` for when `condition` holds.
  void buildIf(mlir::Value condition, llvm::function_ref<void()> body);
  /// Builds a whole nest for when `condition` holds; `body` starts it.
  void buildRegion(mlir::Value condition, llvm::function_ref<void()> body);

  /// The number of open loops and conditions.
  unsigned getLevel() const { return scopes.size(); }
  /// Calls `build` with only the outermost `level` scopes open, and the builder
  /// in front of the next one.
  mlir::Value atLevel(unsigned level, llvm::function_ref<mlir::Value()> build);

  /// Names a value by numbers and addresses.
  using Key = std::vector<const void *>;
  /// The value known by `key` in the open scopes, the innermost one first; null
  /// if there is none.
  mlir::Value find(const Key &key) const;
  /// Makes `value` known by `key` in the current scope.
  void remember(const Key &key, mlir::Value value) {
    known.back()[key] = value;
  }

private:
  std::map<int64_t, mlir::Value> constants;
  /// Open loops and conditions, outermost first.
  llvm::SmallVector<mlir::Operation *> scopes;
  /// The values known at each level.
  llvm::SmallVector<std::map<Key, mlir::Value>> known;
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_LOOPBUILDER_H
