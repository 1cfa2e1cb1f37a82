//===- InputGradients.cpp - The backward pass in two parts ----------------===//

#include "shardc/Transforms/Pipeline/InputGradients.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;

llvm::DenseSet<Operation *> shardc::findInputGradients(Block &block) {
  llvm::DenseSet<Operation *> needed;
  for (Operation &op : llvm::reverse(block)) {
    if (!isPart(&op, Part::Backward))
      continue;
    for (Operation *user : op.getUsers())
      if (isPart(user, Part::Backward) &&
          (needed.contains(user) ||
           user->getAttr(stageAttrName) != op.getAttr(stageAttrName)))
        needed.insert(&op);
  }
  return needed;
}
