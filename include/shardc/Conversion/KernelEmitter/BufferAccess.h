//===- BufferAccess.h - Elements of tensors in memory -----------*- C++ -*-===//
//
// Loads and stores single elements, or vectors of them, of tensors that have a
// buffer. Loaded values have the compute type: bf16 is widened to f32, other
// types are their own. In memory a bool is an i8 and a bf16 an i16.
//
// Not thread-safe; one per kernel.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_BUFFERACCESS_H
#define SHARDC_CONVERSION_KERNELEMITTER_BUFFERACCESS_H

#include "shardc/Conversion/KernelEmitter/LoopBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// The type in which elements of the tensor are computed.
mlir::Type getComputeType(mlir::Value tensor);
/// The type of an element in memory.
mlir::Type getMemoryType(mlir::Type element);
/// Address of element `linear`, null for 0, of an array of `memoryType`.
mlir::Value buildAddress(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value pointer, mlir::Type memoryType,
                         mlir::Value linear);
/// `index` where dimensions of size 1 have place 0.
IndexList dropUnitDims(mlir::Value tensor, llvm::ArrayRef<Index> index);

/// The buffers of one kernel function.
class BufferAccess {
public:
  /// Buffers have addresses of `pointerType` and start at multiples of
  /// `bufferAlignment` bytes; 1: nothing is known.
  BufferAccess(LoopBuilder &loops, mlir::LLVM::LLVMPointerType pointerType,
               int64_t bufferAlignment)
      : loops(loops), builder(loops.builder), loc(loops.loc), math(loops.math),
        pointerType(pointerType), bufferAlignment(bufferAlignment) {}

  /// Adds the address of a tensor on the next device: one, or all whose buffers
  /// the function has.
  void bind(mlir::Value tensor, mlir::Value pointer) {
    pointers[tensor].push_back(pointer);
  }
  /// Lets loads read the buffers of a device, of the first one until then.
  void setDevice(int64_t number) { device = number; }
  int64_t getDevice() const { return device; }
  /// Makes `elements` the content of a tensor, as data of the module.
  void bindData(mlir::Value tensor, mlir::DenseElementsAttr elements);
  /// Sets the multiple of bytes at which one buffer starts.
  void setAlignment(mlir::Value pointer, int64_t alignment) {
    alignments[pointer] = alignment;
  }

  /// Says that the CPU stores the lanes of a mask as fast as a whole vector, as
  /// AVX-512 does. With AVX2 a masked store takes up to 16 cycles.
  void setMaskRegisters(bool exist) { hasMaskRegisters = exist; }

  /// The element(s) of a tensor at `index`, with lanes if the index has any.
  mlir::Value load(mlir::Value tensor, llvm::ArrayRef<Index> index);
  /// The element at `linear` (+ lane · stride) of the tensor's buffer. Lanes
  /// beyond the last place of `clamped`, if given, read that place.
  mlir::Value loadLinear(mlir::Value tensor, mlir::Value linear, int64_t stride,
                         int64_t lanes, const Index *clamped = nullptr);
  /// Writes element(s) of a tensor of the type of `tensor` at `pointer`.
  void store(mlir::Value pointer, mlir::Value tensor,
             llvm::ArrayRef<Index> index, mlir::Value value);

private:
  LoopBuilder &loops;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;
  mlir::LLVM::LLVMPointerType pointerType;
  int64_t bufferAlignment;
  bool hasMaskRegisters = false;
  /// Of buffers that have one of their own.
  llvm::DenseMap<mlir::Value, int64_t> alignments;
  /// By device.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> pointers;
  int64_t device = 0;

  /// As `load`, with lanes over two dimensions.
  mlir::Value loadSpread(mlir::Value tensor, llvm::ArrayRef<Index> index);
  /// Stores the first lanes of a vector, fewer than all, side by side: in
  /// pieces of powers of two, or with a mask.
  void storeLanes(mlir::Value vector, int64_t lanes, mlir::Value address,
                  mlir::Type memoryType);
  /// Bytes at whose multiples the element at place `linear` of the buffer at
  /// `pointer` is known to lie.
  unsigned getVectorAlignment(mlir::Value pointer, mlir::Type memoryType,
                              mlir::Value linear);
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_BUFFERACCESS_H
