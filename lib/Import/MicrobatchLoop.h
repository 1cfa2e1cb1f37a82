//===- MicrobatchLoop.h - Gradient accumulation in JAX loops ----*- C++ -*-===//
//
// A loop that adds up values over slices of the data, as lax.scan does over
// microbatches, becomes a shardc.accumulate instead of being written out. Its
// body is lowered once, with the number of the trip as a value:
//
//   (x: 32x16) -> reshape 4x8x16 -> while i < 4: sum += f(x[i])
//   shardc.accumulate 4 of (x) { ^bb0(rows: 8x16): yield f(rows) }
//
// A slice that the trip's number selects becomes an argument of the body. Where
// the slices are rows of the batch cut in order, each device takes rows of its
// own, so that other rows make a microbatch than in JAX. The sum is the same if
// the rows do not depend on each other (BatchRows) and the summands are affine
// in sums over rows. Otherwise a remark says why, and the rows move to where
// the microbatches of JAX have them: the loop takes 4x8x16, of which dimension
// 0 is not sharded. So does one over data that have that dimension themselves.
//
// A loop over data of which not all that it carries are sums is written out,
// and a remark says why, too.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_IMPORT_MICROBATCHLOOP_H
#define SHARDC_LIB_IMPORT_MICROBATCHLOOP_H

#include "Lowering.h"

namespace shardc {

class MicrobatchLoop {
public:
  /// Of the `while` op `op`, whose operands are `carried`. Borrows `lowering`.
  MicrobatchLoop(Lowering &lowering, mlir::Operation *op,
                 llvm::ArrayRef<mlir::Value> carried);
  ~MicrobatchLoop();

  /// Builds the loop and sets the results of the op, or changes nothing and
  /// returns false.
  bool lower();

  /// While the body is lowered: the window of `sizes` of `x` at `starts` if the
  /// number of the trip selects it, or null.
  mlir::Value takeSlice(mlir::Location loc, mlir::Value x,
                        mlir::ValueRange starts, llvm::ArrayRef<int64_t> sizes);

  /// The same for what a trip leaves: `x`, which starts as zeros, with `update`
  /// at `starts`.
  mlir::Value putSlice(mlir::Location loc, mlir::Value x, mlir::Value update,
                       mlir::ValueRange starts);

private:
  /// What the body takes of `whole` in each trip.
  struct Slice {
    mlir::Value whole;
    mlir::BlockArgument argument;
  };
  /// A result of the op that is `initial` and the sum of `summand` over the
  /// trips. `isPlaced`: rows that each trip has at a place of its own.
  struct Sum {
    mlir::OpResult result;
    mlir::Value initial;
    mlir::Value summand;
    bool isPlaced = false;
  };

  bool matchTrips();
  bool match();
  bool lowerBody(llvm::SmallVectorImpl<mlir::Value> &results);
  void discardBody();
  bool findCounters(llvm::ArrayRef<mlir::Value> results);
  bool matchSums(llvm::ArrayRef<mlir::Value> results);
  bool cutRows();
  void keepMicrobatches();
  bool checkRows();
  bool checkSummands(const class BatchRows &rows);
  void build();
  bool isInvariant(unsigned index) const;
  bool isOutside(mlir::Value value) const;
  std::optional<int64_t> matchMultiple(mlir::Value value) const;
  mlir::Value getArgument(mlir::Value whole);
  void eraseDead();
  /// Notes why the loop is written out. Returns false.
  bool refuse(const llvm::Twine &why);

  Lowering &lowering;
  mlir::Operation *op;
  llvm::SmallVector<mlir::Value> carried;
  int64_t count = 0;
  /// By the carried value: the first number of one that counts the trips.
  llvm::SmallVector<std::optional<int64_t>> counters;
  /// Its arguments stand for sums so far in the body while it is lowered.
  mlir::Block before;
  /// What stands for the carried values.
  llvm::SmallVector<mlir::Value> arguments;
  /// The body of the loop.
  std::unique_ptr<mlir::Block> body;
  /// The number of the trip, from 0 on, a scalar.
  mlir::Value trip;
  llvm::SmallVector<Slice> slices;
  llvm::SmallVector<Sum> sums;
  std::string reason;
};

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_MICROBATCHLOOP_H
