//===- FunctionMemory.h - Places for the values of a function ---*- C++ -*-===//
//
// Plans the arena of one scheduled function: which values share a place, which
// lie side by side, and at what offsets. Used once per function; not
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_FUNCTIONMEMORY_H
#define SHARDC_ANALYSIS_FUNCTIONMEMORY_H

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/MemoryPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <limits>

namespace shardc {

class AccumulateOp;
class Liveness;

/// Per result the argument whose next value it is; null for other results.
std::vector<mlir::BlockArgument> getDonors(mlir::func::FuncOp function);

/// Where the values of a function lie.
///
/// - A new parameter, what is rounded from it, or a state takes its argument's
///   place, copied at the end where the data flow does not allow it.
/// - What a loop sums up has one place from the first run on; the rest of its
///   body is used again in each run.
/// - A result of a kernel or of an all_reduce takes the place of an operand
///   that ends there, where the op may work in place.
/// - What a collective reduces lies side by side in its order, and so do the
///   results, so that each is one region. Gathered tensors need not: each is a
///   concatenation of its own, and weights go one by one. Arguments, values
///   that take an argument's place and values that lie beside others already
///   stay where they are; what is between two such is one region.
class FunctionMemory {
public:
  /// `argumentOffsets` has the offset of every argument by name; everything
  /// else is placed at `base` bytes and behind.
  FunctionMemory(mlir::func::FuncOp function,
                 llvm::StringMap<int64_t> argumentOffsets, int64_t base)
      : function(function), argumentOffsets(std::move(argumentOffsets)),
        memory(base) {}

  /// Adds the copies and finds a place for every value. Returns the bytes of
  /// the arena that the function uses; if they are more than `enough`, perhaps
  /// only a number above that, and there are no places.
  int64_t plan(int64_t enough = std::numeric_limits<int64_t>::max());
  /// Then: annotates ops and arguments with their offsets and the function with
  /// these bytes, `shardc.peak_bytes`.
  void annotate();

private:
  bool mayReplace(mlir::Operation *op, unsigned operand, unsigned result);
  bool mayDonate(mlir::BlockArgument argument, mlir::Value value);
  void donateArguments();
  void placeSums(AccumulateOp loop);
  void forEachOp(llvm::function_ref<void(mlir::Operation &)> callback);
  llvm::SmallVector<mlir::Value> getFreedPlaces(mlir::Operation *writer,
                                                const Liveness &liveness);
  void findPlaces(const Liveness &liveness);
  void findRuns();
  mlir::Value getPlace(mlir::Value value) const;
  int64_t getArgumentOffset(mlir::BlockArgument argument);
  int64_t getOffset(mlir::Value value);

  mlir::func::FuncOp function;
  llvm::StringMap<int64_t> argumentOffsets;
  MemoryPlan memory;
  /// In `memory`, of each place that is no argument's.
  llvm::DenseMap<mlir::Value, unsigned> buffers;
  /// From a value to the one whose place it takes.
  llvm::DenseMap<mlir::Value, mlir::Value> places;
  /// By kernel, where somebody asked.
  llvm::DenseMap<mlir::Operation *, std::vector<KernelNest>> nests;
};

/// Bytes of the arena that the function needs beside its arguments, as it
/// stands; if these are more than `enough`, perhaps only a number above that.
/// Changes nothing.
int64_t getPlannedBytes(mlir::func::FuncOp function,
                        int64_t enough = std::numeric_limits<int64_t>::max());

} // namespace shardc

#endif // SHARDC_ANALYSIS_FUNCTIONMEMORY_H
