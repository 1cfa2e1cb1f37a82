//===- Evaluation.cpp - The evaluation program ----------------------------===//

#include "Evaluation.h"
#include "Programs.h"

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

using namespace mlir;
using namespace shardc;

/// Builds the squared error of each row: its mean over all dimensions but the
/// first.
static Value buildRowErrors(OpBuilder &builder, MseOp op) {
  RankedTensorType type = getTensorType(op.getPrediction());
  Arithmetic a(builder, op.getLoc(), type);
  Value difference = a.sub(op.getPrediction(), op.getTarget());
  auto others = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
  Value sum = reduce(builder, op.getLoc(), ReductionKind::Sum,
                     a.mul(difference, difference), others);
  Arithmetic rows(builder, op.getLoc(), sum);
  int64_t count = type.getNumElements() / type.getDimSize(0);
  return rows.div(sum, rows.constant(static_cast<double>(count)));
}

/// Builds the cross-entropy of each row.
static Value buildRowLosses(OpBuilder &builder, SoftmaxCrossEntropyOp op,
                            const CrossEntropyTerms &terms) {
  Value picked =
      reduce(builder, op.getLoc(), ReductionKind::Sum, terms.picked, {1});
  return Arithmetic(builder, op.getLoc(), picked).sub(terms.normaliser, picked);
}

/// Builds a vector that is 1 for each row whose predicted class is the label,
/// else 0. The prediction is the first class with the highest logit. Classes
/// are numbered from the last one, so that a maximum finds the first.
static Value buildCorrect(OpBuilder &builder, SoftmaxCrossEntropyOp op,
                          const CrossEntropyTerms &terms) {
  Location loc = op.getLoc();
  RankedTensorType type = getTensorType(op.getLogits());
  int64_t last = type.getDimSize(1) - 1;
  Arithmetic a(builder, loc, type.clone(builder.getF32Type()));
  Value isHighest =
      compare(builder, loc, CompareKind::EQ, op.getLogits(),
              broadcastTo(builder, loc, terms.highest, type, {0}));
  Value classes = builder.create<IotaOp>(loc, a.getType(), 1, ShardingAttr(),
                                         DenseI64ArrayAttr());
  Value fromLast = a.sub(a.constant(static_cast<double>(last)), classes);
  Value candidates = a.select(isHighest, fromLast, a.constant(-1));
  Value predicted = reduce(builder, loc, ReductionKind::Max, candidates, {1});

  Arithmetic rows(builder, loc, predicted);
  Value labels = builder.create<ConvertOp>(loc, rows.getType(), op.getLabels());
  Value wanted = rows.sub(rows.constant(static_cast<double>(last)), labels);
  Value equal = compare(builder, loc, CompareKind::EQ, predicted, wanted);
  return builder.create<ConvertOp>(
      loc, rows.getType().clone(builder.getI32Type()), equal);
}

func::FuncOp shardc::buildEvaluation(func::FuncOp loss) {
  Program program(loss, "evaluate", Part::Forward);
  program.addParameters();
  program.addData();
  Value value = program.cloneBody(/*decompose=*/false);
  program.addResult(value, "loss");

  OpBuilder &builder = program.getBuilder();
  if (auto mse = value.getDefiningOp<MseOp>()) {
    if (getTensorType(mse.getPrediction()).getRank() > 0)
      program.addResult(buildRowErrors(builder, mse), "per_example_loss");
  } else if (auto entropy = value.getDefiningOp<SoftmaxCrossEntropyOp>()) {
    CrossEntropyTerms terms = buildCrossEntropyTerms(
        builder, entropy.getLoc(), entropy.getLogits(), entropy.getLabels());
    program.addResult(buildRowLosses(builder, entropy, terms),
                      "per_example_loss");
    program.addResult(buildCorrect(builder, entropy, terms), "correct");
  }
  return program.finish();
}
