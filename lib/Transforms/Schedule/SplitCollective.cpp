//===- SplitCollective.cpp - Start and wait of a collective ---------------===//

#include "SplitCollective.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

using namespace mlir;
using namespace shardc;

CollectiveStartOp shardc::splitCollective(Operation *collective) {
  OpBuilder builder(collective);
  Location loc = collective->getLoc();
  auto start = builder.create<CollectiveStartOp>(
      loc, HandleType::get(builder.getContext()), collective->getOperands());
  auto wait = builder.create<CollectiveWaitOp>(
      loc, collective->getResultTypes(), start.getHandle());
  setPlaceInStep(start, collective);
  setPlaceInStep(wait, collective);
  collective->replaceAllUsesWith(wait);
  Block *body = builder.createBlock(&start.getBody());
  for (Value operand : start.getOperands())
    body->addArgument(operand.getType(), getFileLocation(operand.getLoc()));
  collective->moveBefore(body, body->end());
  collective->setOperands(body->getArguments());
  builder.create<YieldOp>(loc, collective->getResults());
  return start;
}
