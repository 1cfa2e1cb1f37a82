//===- ControlOps.cpp - Loops and branches of StableHLO -------------------===//
//
// A loop whose number of trips is known is written out, unless it adds up
// microbatches. Of branches, all are computed, and their results selected: no
// op has an effect.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "MicrobatchLoop.h"

using namespace mlir;
using namespace shardc;

static LogicalResult lowerWhile(Lowering &lowering, Operation *op) {
  constexpr int64_t mostTrips = 4096;
  SmallVector<Value> carried, results;
  for (Value operand : op->getOperands())
    carried.push_back(lowering.get(operand));
  Type boolean = RankedTensorType::get({}, lowering.getBuilder().getI1Type());
  if (op->getOperandTypes() != op->getResultTypes())
    return emitError(op->getLoc()) << "a loop gives the types that it takes";
  if (lowering.mayAccumulate() && MicrobatchLoop(lowering, op, carried).lower())
    return success();
  for (int64_t trip = 0;; ++trip) {
    if (failed(lowering.runRegion(op, op->getRegion(0), carried, boolean,
                                  results)))
      return failure();
    std::optional<int64_t> goesOn = getConstantInteger(results.front());
    if (!goesOn)
      return emitError(op->getLoc())
             << "a loop whose number of trips depends on values of the program "
                "is not supported: use lax.scan, or lax.fori_loop with "
                "constant "
                "bounds and jnp.where for trips without effect";
    if (*goesOn == 0)
      break;
    if (trip == mostTrips)
      return emitError(op->getLoc())
             << "a loop of more than " << mostTrips
             << " trips is not supported, since it is written out";
    if (failed(lowering.runRegion(op, op->getRegion(1), carried,
                                  op->getResultTypes(), results)))
      return failure();
    carried = results;
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), carried))
    lowering.set(result, value);
  return success();
}

static LogicalResult lowerCase(Lowering &lowering, Operation *op) {
  if (op->getNumOperands() != 1 || op->getNumRegions() == 0)
    return emitError(op->getLoc()) << "branches have one index";
  Value index = lowering.get(op, 0);
  int64_t last = op->getNumRegions() - 1;
  // An index without a branch takes the last one.
  std::optional<int64_t> known = getConstantInteger(index);
  int64_t first = 0;
  if (known)
    first = last = *known < 0 || *known > last ? last : *known;
  SmallVector<Value> chosen, results;
  for (int64_t branch = last; branch >= first; --branch) {
    if (failed(lowering.runRegion(op, op->getRegion(branch), {},
                                  op->getResultTypes(), results)))
      return failure();
    if (branch == last) {
      chosen = results;
      continue;
    }
    OpBuilder &builder = lowering.getBuilder();
    Value number = constantSplat(builder, op->getLoc(), getTensorType(index),
                                 static_cast<double>(branch));
    Value isTaken =
        compare(builder, op->getLoc(), CompareKind::EQ, index, number);
    for (auto [value, result] : llvm::zip_equal(chosen, results)) {
      Arithmetic a(builder, op->getLoc(), result);
      Value predicate = lowering.broadcast(
          op->getLoc(), isTaken, a.getType().clone(builder.getI1Type()), {});
      value = a.select(predicate, result, value);
    }
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), chosen))
    lowering.set(result, value);
  return success();
}

ArrayRef<OpLowering> shardc::getControlLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.while", lowerWhile, -1, 2},
      {"stablehlo.case", lowerCase, -1, -1},
  };
  return table;
}
