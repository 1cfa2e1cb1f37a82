//===- StageProposer.h - Other stages for ops -------------------*- C++ -*-===//
//
// Proposes to move the boundary between two stages of a pipeline to where fewer
// bytes cross. The proposals promise no less time. Reads the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_WHATIF_STAGEPROPOSER_H
#define SHARDC_WHATIF_STAGEPROPOSER_H

#include "shardc/WhatIf/StageLabels.h"

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// The most ops over which a boundary is moved.
constexpr size_t maxMovedOps = 32;

class StageProposer {
public:
  /// `loss` is the loss function of a module after `import`; `rankOfStage` has
  /// the ranks of its stages.
  StageProposer(mlir::func::FuncOp loss, std::vector<int> rankOfStage);

  /// Other labels with which fewer bytes cross between all stages of the global
  /// program: those that move one of the boundaries between the stages `from`
  /// and `to`, either way. A boundary that is moved further crosses fewer
  /// bytes. At most `limit`, the nearest first.
  std::vector<StageLabels> propose(int64_t from, int64_t to,
                                   size_t limit) const;

  /// Bytes that cross between ranks in a step with `labels`, and gradients that
  /// come back, if nothing is sharded.
  int64_t getSentBytes(const StageLabels &labels) const;

private:
  /// A value that has one home, the numbers of its users, and its bytes with
  /// those of its gradient.
  struct SentValue {
    /// The op that makes it; -1 for a parameter, at home where it is used
    /// first.
    int maker;
    std::vector<size_t> users;
    int64_t bytes;
  };

  void addValue(mlir::Value value, int maker, bool isTrained);
  bool moveNext(StageLabels &labels, int64_t boundary, bool isLater) const;

  mlir::func::FuncOp loss;
  std::vector<int> rankOfStage;
  StageLabels now;
  std::vector<SentValue> values;
};

} // namespace shardc

#endif // SHARDC_WHATIF_STAGEPROPOSER_H
