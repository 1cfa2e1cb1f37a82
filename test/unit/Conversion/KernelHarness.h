//===- KernelHarness.h - One kernel, natively and by the book ---*- C++ -*-===//
//
// Compiles a module with one shardc.kernel to a shared object and calls it, and
// computes the same by the reference interpreter. The loops are those for the
// CPU, or those that a GPU's threads would run, one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_CONVERSION_KERNELHARNESS_H
#define SHARDC_TEST_UNIT_CONVERSION_KERNELHARNESS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Interpreter/Tensor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <random>
#include <string>
#include <vector>

namespace shardc {

/// The type of a tensor as text: "tensor<2x3xf32>".
inline std::string tensor(std::vector<int64_t> shape,
                          const char *type = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + type + ">";
}

/// With single, odd and vector-sized dimensions, and of several iterations.
inline const std::vector<std::pair<int64_t, int64_t>> matrixShapes = {
    {1, 1},   {1, 7},   {5, 1},     {3, 8},     {7, 10},  {37, 5},
    {13, 33}, {40, 64}, {130, 100}, {701, 301}, {5003, 7}};

/// Whose loops a kernel has: with vectors of AVX2, of AVX-512, or a GPU's.
enum class Mapping { CPU, WideCPU, EmulatedGPU };

/// Whether this CPU can run the loops with vectors of AVX-512.
bool hasWideVectors();

/// The functions of a module after `lowerKernels`, native.
class NativeKernels {
public:
  using Function = void (*)(void *const *buffers, const int64_t *context,
                            int64_t begin, int64_t end);

  NativeKernels() = default;
  NativeKernels(const NativeKernels &) = delete;
  NativeKernels &operator=(const NativeKernels &) = delete;
  ~NativeKernels();

  /// Once. Failures are reported by gtest.
  void load(mlir::ModuleOp module, Mapping mapping);
  /// Null if there is no such function.
  Function find(llvm::StringRef name) const;

private:
  int file = -1;
  void *library = nullptr;
};

/// One kernel, native.
class KernelHarness {
public:
  /// `body` is a kernel's region after its operand list, for a mesh
  /// <["x" = 2, "y" = 3]>: "(types) -> types { ^bb0(...): ... }".
  explicit KernelHarness(const std::string &body,
                         Mapping mapping = Mapping::CPU);

  /// Whether compilation and loading worked; failures are reported by gtest.
  bool isReady() const { return entry != nullptr; }
  int64_t getExtent() const { return extent; }
  std::vector<mlir::RankedTensorType> getOperandTypes();
  /// Whether all mappings compute each result in the same order.
  bool isElementwise();

  /// Lets buffers start so many bytes behind multiples of 16 from now on.
  void setOffset(size_t bytes) { offset = bytes; }
  /// Lets results take the places of operands from now on, one each, where a
  /// memory plan may put them there; or none any more.
  void setInPlace(bool inPlace);
  /// Runs the kernel in pieces of `piece` iterations (0: all at once) for the
  /// device at (x, y).
  std::vector<Tensor> run(const std::vector<Tensor> &operands,
                          int64_t piece = 0, int64_t x = 0, int64_t y = 0);
  /// The same, where each piece finds of the operands only the bytes that it is
  /// said to touch, and must write no others.
  std::vector<Tensor> runOnOwnBytes(const std::vector<Tensor> &operands,
                                    int64_t piece, int64_t x, int64_t y);
  /// The same by interpretation.
  std::vector<Tensor> interpret(const std::vector<Tensor> &operands,
                                int64_t x = 0, int64_t y = 0);
  /// Operands drawn from `random`: floats in [-2, 2), small integers, bools.
  std::vector<Tensor> makeOperands(std::mt19937 &random);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelOp kernel;
  NativeKernels native;
  NativeKernels::Function entry = nullptr;
  int64_t extent = 0;
  size_t offset = 0;
  /// By the number of a result that of the operand whose place it takes.
  std::map<size_t, size_t> places;
};

/// Expects the kernel to compute the values of interpretation, to `tolerance`
/// relative to the largest element, and the same bits in any division, with
/// all mappings; to touch only the bytes that it is said to touch; and the same
/// bits for all CPUs, and for GPUs if it is elementwise.
void expectKernelMatches(const std::string &body, double tolerance = 1e-5,
                         unsigned seed = 1);

} // namespace shardc

#endif // SHARDC_TEST_UNIT_CONVERSION_KERNELHARNESS_H
