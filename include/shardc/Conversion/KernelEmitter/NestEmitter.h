//===- NestEmitter.h - Tensor values at an index ----------------*- C++ -*-===//
//
// Computes single elements, or vectors of neighbouring elements, of tensors in
// a kernel's body, on demand: an op is computed from its operands at the places
// that it needs of them. It is made of four parts: `loops`, the loops and the
// level at which code is built; `memory`, loads and stores; `device`, the place
// of the device on the mesh; and the arithmetic of `loops.math`.
//
// Each (tensor, index) is built once per scope. Values in registers have the
// compute type: bf16 is widened to f32, other types are their own.
//
// Not thread-safe; one emitter per kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_NESTEMITTER_H
#define SHARDC_CONVERSION_KERNELEMITTER_NESTEMITTER_H

#include "shardc/Conversion/KernelEmitter/BufferAccess.h"
#include "shardc/Conversion/KernelEmitter/DeviceCoordinates.h"
#include "shardc/Conversion/KernelEmitter/LoopBuilder.h"
#include "shardc/Conversion/KernelEmitter/Transcendentals.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Emits an error unless NestEmitter has code for `op`, an op of a kernel's
/// body. All lowerings of kernels ask before they emit anything.
mlir::LogicalResult checkHasValue(mlir::Operation *op);

/// Builds the body of one kernel function.
class NestEmitter {
public:
  /// `entry` is the function's first block; `context` its pointer to the
  /// device's coordinates, followed by the seed and the microbatch. Buffers
  /// start at multiples of `bufferAlignment` bytes; 1: nothing is known.
  NestEmitter(mlir::OpBuilder &builder, mlir::Location loc, MeshOp mesh,
              mlir::Block *entry, mlir::Value context, int64_t bufferAlignment);
  NestEmitter(const NestEmitter &) = delete;
  NestEmitter &operator=(const NestEmitter &) = delete;

  LoopBuilder loops;
  BufferAccess memory;
  DeviceCoordinates device;

  /// Forgets the values computed, between nests; vectors have so many lanes
  /// from now on. With linear places (an elementwise nest without structure)
  /// every index stands for the place in row-major order, at the last dimension
  /// longer than 1.
  void startNest(int64_t numLanes, bool hasLinearPlaces);

  /// The element(s) of `tensor` at `index`: a scalar, or a vector if the index
  /// has lanes and the value differs between them.
  mlir::Value evaluate(mlir::Value tensor, llvm::ArrayRef<Index> index);
  /// Makes `value` the one that `evaluate` returns, inside the current scope.
  void preset(mlir::Value tensor, llvm::ArrayRef<Index> index,
              mlir::Value value);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;
  Transcendentals functions;
  bool isFlat = false;

  /// The op's value at `index`, built at the insertion point.
  mlir::Value compute(mlir::Value tensor, llvm::ArrayRef<Index> index);
  mlir::Value computeUnary(mlir::Operation *op, mlir::Value x);
  mlir::Value computeBinary(mlir::Operation *op, mlir::Value lhs,
                            mlir::Value rhs);
  mlir::Value computeCompare(CompareOp op, mlir::Value lhs, mlir::Value rhs);
  mlir::Value computeConvert(ConvertOp op, mlir::Value value);
  mlir::Value computeConstant(ConstantOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeReshape(ReshapeOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeReduce(ReduceOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeDot(DotGeneralOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeExtractSlice(ExtractSliceOp op,
                                  llvm::ArrayRef<Index> index);
  mlir::Value computePad(PadOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeConcatenate(ConcatenateOp op, llvm::ArrayRef<Index> index);
  mlir::Value computePermuteRows(PermuteRowsOp op, llvm::ArrayRef<Index> index);
  /// The element that pads `result`; -inf is the lowest integer, too.
  mlir::Value computeFill(mlir::Value result, const llvm::APFloat &fill);
  /// `place` moved into [0, `size`); adds to the condition `isInside`, which
  /// may be null, that it was there before.
  mlir::Value clampPlace(mlir::Value place, int64_t size,
                         mlir::Value &isInside);
  mlir::Value computeIota(IotaOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeMask(MaskOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeSlice(SliceOp op, llvm::ArrayRef<Index> index);
  mlir::Value computeRandom(RandomUniformOp op, llvm::ArrayRef<Index> index);
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_NESTEMITTER_H
