//===- ReuseDistances.h - Bytes between accesses of a step ------*- C++ -*-===//
//
// The reuse distance of an access: the bytes that a step accesses since it
// accessed the same place of the arena last, counted with repetitions, and at
// most those of all places (Mattson et al., Evaluation techniques for storage
// hierarchies, IBM Systems Journal 9(2), 1970). Reads the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_REUSEDISTANCES_H
#define SHARDC_LIB_REPORT_REUSEDISTANCES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>

namespace shardc {

/// Goes through the accesses of a program in its order.
class ReuseDistances {
public:
  /// Places the arguments of `function`, as far as they have offsets.
  explicit ReuseDistances(mlir::func::FuncOp function);

  /// Places the results of `op`, as far as they have offsets, and those values
  /// of it that are in the place of others: of collectives that are started and
  /// waited for, of rows of another value, and in the body of a loop.
  void place(mlir::Operation *op);
  /// Lets `value` be in the place of `of`.
  void setAlias(mlir::Value value, mlir::Value of) { aliases[value] = of; }
  /// The value in whose place `value` is.
  mlir::Value getRoot(mlir::Value value) const;
  /// The offset of `value` in the arena, if it is planned.
  std::optional<int64_t> getOffset(mlir::Value value) const;
  /// That, or else a negative number of its own.
  int64_t getPlace(mlir::Value value);
  /// Lets `value` begin where `place` says.
  void setPlace(mlir::Value value, int64_t place) { places[value] = place; }

  /// Accesses `bytes` of `value`, and returns the distance.
  double access(mlir::Value value, double bytes);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> aliases;
  /// Offsets in the arena, as far as they are planned; numbers of others.
  llvm::DenseMap<mlir::Value, int64_t> places;
  llvm::DenseMap<mlir::Value, size_t> numbers;
  struct Place {
    /// The bytes accessed until it was accessed last, and its own.
    double last = 0, bytes = 0;
  };
  llvm::DenseMap<int64_t, Place> accesses;
  double accessed = 0, footprint = 0;
};

} // namespace shardc

#endif // SHARDC_LIB_REPORT_REUSEDISTANCES_H
