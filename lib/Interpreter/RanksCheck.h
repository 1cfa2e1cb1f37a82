//===- RanksCheck.h - The programs of a pipeline's ranks, checked -*- C++
//-*-===//

#ifndef SHARDC_LIB_INTERPRETER_RANKSCHECK_H
#define SHARDC_LIB_INTERPRETER_RANKSCHECK_H

#include "ValueCheck.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

#include <map>

namespace shardc {

/// Runs the functions of all ranks for one program together, from message to
/// message, and compares them with the global program, op by op: those of a
/// task with the run of the loop for its microbatch. See checkRanks. Used once.
/// Emits an error on every failure.
class RanksCheck : private ValueCheck {
public:
  /// `ranks` are the functions of the program `program`, by rank.
  RanksCheck(mlir::func::FuncOp global, llvm::StringRef program,
             llvm::ArrayRef<mlir::func::FuncOp> ranks, const Devices &devices,
             PartitionSummary &summary);

  /// Evaluates on inputs of `kind` and adds to the summary.
  mlir::LogicalResult run(InputKind kind);

private:
  /// The global program's values in one run of its loop.
  struct Run {
    GlobalRun values;
    /// By result of the loop the sum up to this run.
    std::vector<Tensor> sums;
  };
  /// What a rank has sent.
  struct Message {
    int64_t from;
    SendOp send;
    llvm::SmallVector<mlir::Value> values;
    bool isReceived = false;
  };
  /// The function of a rank, its next op, and the reductions over the ranks
  /// that it has started.
  struct Rank {
    mlir::func::FuncOp function;
    mlir::Operation *next;
    llvm::SmallVector<CollectiveStartOp> reductions;
  };

  const Tensor &getExpected(const Tracked &tracked) const override;
  int64_t getRunOf(mlir::Operation *source) const override;
  /// Also compares additions to sums over microbatches.
  mlir::LogicalResult follow(mlir::Operation *op) override;

  mlir::LogicalResult feedArguments();
  /// Evaluates the global loop on the microbatches that the ranks take.
  mlir::LogicalResult evaluateRuns();
  /// Evaluates ops until one must wait for a message; whether one was
  /// evaluated.
  mlir::FailureOr<bool> advance(int64_t rank);
  mlir::LogicalResult runAllRanks();

  mlir::LogicalResult runOp(int64_t rank, mlir::Operation *op);
  mlir::LogicalResult evaluate(mlir::Operation *op);
  void enterPlaceOf(int64_t rank, mlir::Operation *op);
  mlir::LogicalResult checkMicrobatches(mlir::Operation *op);
  /// Gives `to` the value that `from` has.
  void copy(mlir::Value from, mlir::Value to);
  mlir::LogicalResult runKernel(KernelOp kernel);
  mlir::LogicalResult runGemm(GemmOp gemm);
  mlir::LogicalResult runRows(RowsOp rows);
  mlir::LogicalResult addToSum(AddOp add);
  mlir::LogicalResult start(int64_t rank, CollectiveStartOp op);
  mlir::LogicalResult receive(int64_t rank, ReceiveOp op,
                              CollectiveWaitOp wait);
  /// Gives the devices of a rank the results of its reduction `number` over
  /// the ranks.
  mlir::LogicalResult reduce(size_t number, CollectiveWaitOp wait);
  /// The number of the reduction over the ranks that `start` is.
  std::optional<size_t> findReduction(CollectiveStartOp start) const;
  /// What `op` waits for and what another rank has not started yet: a receive,
  /// or a reduction over the ranks; null if nothing.
  mlir::Operation *getMissing(mlir::Operation *op) const;
  /// The number of the loop's operand that `whole` is; none if it is none.
  std::optional<unsigned> findOperand(mlir::Value whole) const;
  mlir::FailureOr<mlir::Value> findResult(mlir::func::FuncOp function,
                                          llvm::StringRef name);
  mlir::LogicalResult returnFrom(int64_t rank, mlir::Operation *op);
  mlir::LogicalResult checkEnd();

  llvm::StringRef program;
  std::vector<Rank> ranks;
  /// The loop of the global program; null if it has none.
  AccumulateOp loop;
  /// By run the rows of the batch, and the values.
  llvm::SmallVector<llvm::SmallVector<int64_t>> rowsOfRuns;
  std::vector<Run> runs;
  /// Sums to which nothing has been added.
  llvm::DenseSet<mlir::Value> zeros;
  std::map<int64_t, Message> messages;
  /// Ops that were evaluated before the others.
  llvm::DenseSet<mlir::Operation *> evaluated;
  /// Results that a rank has returned.
  llvm::StringSet<> returned;
};

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_RANKSCHECK_H
