//===- CollectiveCauses.cpp - Causes of merged collectives ----------------===//

#include "CollectiveCauses.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

/// The number of causes that are named; further ones are counted.
static constexpr size_t maxCauses = 8;

void shardc::setJoinedCause(Operation *merged, ArrayRef<Operation *> members) {
  llvm::SetVector<StringRef> causes;
  for (Operation *op : members)
    if (auto cause = op->getAttrOfType<StringAttr>(causeAttrName))
      causes.insert(cause.getValue());
  if (causes.empty())
    return;
  std::string text =
      llvm::join(causes.getArrayRef().take_front(maxCauses), "; ");
  if (causes.size() > maxCauses)
    text += "; and " + std::to_string(causes.size() - maxCauses) + " more";
  merged->setAttr(causeAttrName, StringAttr::get(merged->getContext(), text));
}
