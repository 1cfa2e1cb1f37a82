//===- NestEmitter.h - Tensor values at an index ----------------*- C++ -*-===//
//
// Computes single elements, or vectors of neighbouring elements, of tensors in
// a kernel's body, on demand and at the outermost loop level at which their
// index is known: what does not depend on an inner loop is built before it.
// Each (tensor, index) is built once per scope. Values in flight have the
// compute type: bf16 is widened to f32, other types are their own.
//
// Not thread-safe; one emitter per kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_NESTEMITTER_H
#define SHARDC_CONVERSION_KERNELEMITTER_NESTEMITTER_H

#include "shardc/Conversion/KernelEmitter/VectorMath.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>
#include <utility>
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
};

/// One index per dimension of a tensor.
using IndexList = llvm::SmallVector<Index, 4>;

/// Builds the body of one kernel function.
class NestEmitter {
public:
  /// `entry` is the function's first block; `context` its pointer to the
  /// device's coordinates followed by the seed. Buffers start at multiples of
  /// `bufferAlignment` bytes; 1: nothing is known.
  NestEmitter(mlir::OpBuilder &builder, mlir::Location loc, MeshOp mesh,
              mlir::Block *entry, mlir::Value context, int64_t bufferAlignment);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath math;

  /// Says at which address a tensor lies.
  void bind(mlir::Value tensor, mlir::Value pointer) {
    pointers[tensor] = pointer;
  }
  /// Says of one buffer at which multiples it starts, in bytes.
  void setAlignment(mlir::Value pointer, int64_t alignment) {
    alignments[pointer] = alignment;
  }
  /// Whether all indices stand for places in row-major order at the last
  /// dimension longer than 1 (elementwise nests without structure).
  void setFlat(bool value) { isFlat = value; }
  /// Forgets what was computed, between nests; vectors have so many lanes from
  /// now on.
  void startNest(int64_t numLanes);

  /// The type in which elements of the tensor are computed.
  static mlir::Type getComputeType(mlir::Value tensor);
  /// The element(s) of `tensor` at `index`: a scalar, or a vector if the index
  /// has lanes and the value differs between them.
  mlir::Value evaluate(mlir::Value tensor, llvm::ArrayRef<Index> index);
  /// Makes `value` the one that `evaluate` returns, inside the current scope.
  void preset(mlir::Value tensor, llvm::ArrayRef<Index> index,
              mlir::Value value);
  /// Writes element(s) of a tensor of the type of `tensor` at `pointer`.
  void store(mlir::Value pointer, mlir::Value tensor,
             llvm::ArrayRef<Index> index, mlir::Value value);

  /// An i64 constant, at the start of the function.
  mlir::Value constantI64(int64_t value);
  Index constantIndex(int64_t value, int64_t lanes = 0);
  /// The place `value`, an i64, in the innermost open scope, where what is
  /// there is then computed. Places of `buildIf` need it: what belongs to an
  /// outer scope is computed outside, whatever the condition.
  Index makeIndex(mlir::Value value) {
    return Index{value, unsigned(scopes.size()), 0, -1};
  }
  /// index + value, index · value, both of the level of `index`.
  Index addIndex(const Index &index, int64_t value);
  Index mulIndex(const Index &index, int64_t value);
  /// The coordinates of a row-major linear index over `sizes`.
  IndexList delinearize(const Index &linear, llvm::ArrayRef<int64_t> sizes);

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

  /// The neutral element of a reduction in the compute type of `tensor`.
  mlir::Value getIdentity(ReductionKind kind, mlir::Type type);
  mlir::Value combine(ReductionKind kind, mlir::Value lhs, mlir::Value rhs);
  /// All lanes of a vector combined, halves first.
  mlir::Value combineLanes(ReductionKind kind, mlir::Value value);
  mlir::Value getFirstLane(mlir::Value value);
  /// Lanes from `lanes` on replaced by `fill`.
  mlir::Value maskLanes(mlir::Value value, int64_t lanes, mlir::Value fill);
  /// Vector constant true in the first `lanes` lanes.
  mlir::Value getLaneMask(int64_t lanes);

  /// The element at `linear` (+ lane · stride) of the tensor's buffer.
  mlir::Value load(mlir::Value tensor, mlir::Value linear, int64_t stride,
                   int64_t lanes, const Index *clamped = nullptr);
  mlir::Value getPointer(mlir::Value tensor) { return pointers.lookup(tensor); }
  /// The mesh axes, by number and ascending, whose coordinates the code built
  /// since the last call reads.
  std::set<int64_t> takeCoordinateAxes() {
    return std::exchange(coordinateAxes, {});
  }
  /// Address of element `linear` of an array of the tensor's element type.
  mlir::Value getAddress(mlir::Value pointer, mlir::Type memoryType,
                         mlir::Value linear);
  /// i1 lies in memory as i8, bf16 as i16.
  static mlir::Type getMemoryType(mlir::Type element);

private:
  MeshOp mesh;
  mlir::Block *entry;
  mlir::Value context;
  int64_t bufferAlignment;
  /// Of buffers that have one of their own.
  llvm::DenseMap<mlir::Value, int64_t> alignments;
  bool isFlat = false;
  std::set<int64_t> coordinateAxes;
  llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  std::map<int64_t, mlir::Value> constants;
  /// Open loops and conditions, outermost first; code inside the last one has
  /// level scopes.size().
  llvm::SmallVector<mlir::Operation *> scopes;
  using Key = std::vector<const void *>;
  /// What is known at each level.
  llvm::SmallVector<std::map<Key, mlir::Value>> known;

  static llvm::ArrayRef<int64_t> getShape(mlir::Value tensor) {
    return mlir::cast<mlir::RankedTensorType>(tensor.getType()).getShape();
  }
  /// `index` where dimensions of size 1 have one place.
  static IndexList dropUnitDims(mlir::Value tensor,
                                llvm::ArrayRef<Index> index);
  static Key getKey(mlir::Value tensor, llvm::ArrayRef<Index> index);
  mlir::Value atLevel(unsigned level, llvm::function_ref<mlir::Value()> build);
  mlir::Value compute(mlir::Value tensor, llvm::ArrayRef<Index> index);
  mlir::Value computeUnary(mlir::Operation *op, mlir::Value x);
  mlir::Value computeBinary(mlir::Operation *op, mlir::Value lhs,
                            mlir::Value rhs);
  mlir::Value computeCompare(CompareOp op, mlir::Value lhs, mlir::Value rhs);
  mlir::Value computeConvert(ConvertOp op, mlir::Value value);
  mlir::Value computeConstant(ConstantOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeReshape(ReshapeOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeIota(IotaOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeRandom(RandomUniformOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeMask(MaskOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeSlice(SliceOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeReduce(ReduceOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeDot(DotGeneralOp op, llvm::ArrayRef<Index> index);
  mlir::Value loadAt(mlir::Value tensor, llvm::ArrayRef<Index> index);
  /// Bytes at whose multiples the element at place `linear` of the buffer at
  /// `pointer` is known to lie.
  unsigned getVectorAlignment(mlir::Value pointer, mlir::Type memoryType,
                              mlir::Value linear);

  /// This device's index over mesh axes, major to minor, as i64.
  mlir::Value getShardIndex(llvm::ArrayRef<mlir::StringAttr> axes);
  mlir::Value loadContext(int64_t position);
  /// The places along a dimension as i64: a scalar, or a vector of lanes.
  mlir::Value getPlaces(const Index &index);
  /// The same along dimension `dim` of the global tensor of which `result` is
  /// the shard `shard` and, in a loop, the part `microbatch` (see IotaOp).
  mlir::Value
  getGlobalPlaces(mlir::Value result, int64_t dim, const Index &index,
                  std::optional<ShardingAttr> shard,
                  std::optional<llvm::ArrayRef<int64_t>> microbatch);
  mlir::Value roundToBF16(mlir::Value value);
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_NESTEMITTER_H
