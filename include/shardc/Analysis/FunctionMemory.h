//===- FunctionMemory.h - Places for the values of a function ---*- C++ -*-===//
//
// Plans the arena of one scheduled function: the values that share a place,
// those that are adjacent, and all offsets (by MemoryPlan). Used once per
// function; not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_FUNCTIONMEMORY_H
#define SHARDC_ANALYSIS_FUNCTIONMEMORY_H

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/Nesting.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <limits>

namespace shardc {

class AccumulateOp;
class Liveness;

/// Where the arguments of some functions are in the arena that these share, by
/// name: one after the other, in the order in which functions declare them.
struct ArgumentLayout {
  llvm::StringMap<int64_t> offsets;
  int64_t bytes = 0; ///< Of all.
};
/// Emits an error if an argument has no name, or another size in another
/// function.
mlir::FailureOr<ArgumentLayout>
placeArguments(llvm::ArrayRef<mlir::func::FuncOp> functions);

/// Per result the argument whose next value it is; null for other results.
std::vector<mlir::BlockArgument> getDonors(mlir::func::FuncOp function);

/// The nests of kernels, found on demand.
using KernelNests = llvm::DenseMap<mlir::Operation *, std::vector<KernelNest>>;

/// Whether result `result` of `op` may be written over operand `operand`.
bool mayReplace(mlir::Operation *op, unsigned operand, unsigned result,
                KernelNests &nests);

/// The places of the values of a function.
///
/// - A new parameter, its shadow weight and a new state take their argument's
///   place; a copy is added at the end where the data flow requires it.
/// - A sum over a loop has one place from the first run on; the rest of the
///   loop's body uses the same memory in each run.
/// - A result of a kernel or of an all_reduce takes the place of an operand
///   that ends there, where the op may work in place.
/// - The operands of a reduction are adjacent, in its order, and so are its
///   results: each is one region. Gathered tensors need not be: each is a
///   concatenation of its own, and weights go one by one. Arguments, values in
///   an argument's place and values that are adjacent to others already stay
///   where they are; the values between two such are one region.
class FunctionMemory {
public:
  /// `argumentOffsets` has the offset of every argument by name; everything
  /// else is placed from byte `base` on.
  FunctionMemory(mlir::func::FuncOp function,
                 llvm::StringMap<int64_t> argumentOffsets, int64_t base)
      : function(function), blocks(getBlocks(function)),
        argumentOffsets(std::move(argumentOffsets)), memory(base) {}

  /// Adds the copies and finds a place for every value. Returns the bytes of
  /// the arena that the function uses. If they are more than `enough`, the
  /// result may be any number between, and there are no places.
  int64_t plan(int64_t enough = std::numeric_limits<int64_t>::max());
  /// After `plan`: annotates ops and arguments with their offsets, and the
  /// function with these bytes as `shardc.peak_bytes`.
  void annotate();
  /// Removes the copies that `plan` has added; the places mean nothing then.
  void removeCopies();

private:
  bool mayDonate(mlir::BlockArgument argument, mlir::Value value);
  void donateArguments();
  void placeSums(AccumulateOp loop);
  /// Makes `operand`, of a terminator, a copy of its value.
  void copy(mlir::OpOperand &operand);
  void forEachOp(llvm::function_ref<void(mlir::Operation &)> callback);
  /// An operand of an op, by number, whose place is free after the op.
  struct FreedPlace {
    unsigned operand;
    mlir::Value place;
  };
  llvm::SmallVector<FreedPlace> getFreedPlaces(mlir::Operation *writer,
                                               const Liveness &liveness);
  void findPlaces(const Liveness &liveness);
  void findRuns();
  mlir::Value getPlace(mlir::Value value) const;
  int64_t getArgumentOffset(mlir::BlockArgument argument);
  int64_t getOffset(mlir::Value value);

  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Block *> blocks;
  llvm::StringMap<int64_t> argumentOffsets;
  MemoryPlan memory;
  /// The buffer in `memory` of each place other than an argument's.
  llvm::DenseMap<mlir::Value, unsigned> buffers;
  /// From a value to the one whose place it takes.
  llvm::DenseMap<mlir::Value, mlir::Value> places;
  /// The operands that are copies now, and the values that they were.
  llvm::SmallVector<std::pair<mlir::OpOperand *, mlir::Value>> copied;
  KernelNests nests;
};

/// Bytes of the arena that the function in its present form needs beside its
/// arguments. If they exceed `enough`, the result may be a lower bound that
/// exceeds it too. Changes nothing.
int64_t getPlannedBytes(mlir::func::FuncOp function,
                        int64_t enough = std::numeric_limits<int64_t>::max());

} // namespace shardc

#endif // SHARDC_ANALYSIS_FUNCTIONMEMORY_H
