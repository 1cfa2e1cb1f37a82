//===- StageProposer.cpp - Other stages for ops ---------------------------===//

#include "shardc/WhatIf/StageProposer.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace mlir;
using namespace shardc;

StageProposer::StageProposer(func::FuncOp loss, std::vector<int> rankOfStage)
    : loss(loss), rankOfStage(std::move(rankOfStage)),
      now(getStageLabels(loss)) {
  // The values with a gradient, nearly enough, depend on a parameter.
  llvm::DenseSet<Value> trained;
  for (BlockArgument argument : loss.getArguments())
    if (isWeight(argument)) {
      trained.insert(argument);
      addValue(argument, -1, true);
    }
  Block &block = loss.getBody().front();
  for (auto [number, op] : llvm::enumerate(block.without_terminator())) {
    bool isTrained = llvm::any_of(op.getOperands(), [&](Value operand) {
      return trained.contains(operand);
    });
    for (Value result : op.getResults()) {
      if (isTrained)
        trained.insert(result);
      addValue(result, static_cast<int>(number), isTrained);
    }
  }
}

void StageProposer::addValue(Value value, int maker, bool isTrained) {
  RankedTensorType type = getTensorType(value);
  int64_t bytes =
      type.getNumElements() * getElementBytes(type.getElementType());
  SentValue sent{maker, {}, isTrained ? 2 * bytes : bytes};
  Block &block = loss.getBody().front();
  for (Operation *user : value.getUsers())
    if (user != block.getTerminator())
      sent.users.push_back(std::distance(block.begin(), Block::iterator(user)));
  values.push_back(std::move(sent));
}

int64_t StageProposer::getSentBytes(const StageLabels &labels) const {
  int64_t bytes = 0;
  for (const SentValue &value : values) {
    std::set<int64_t> stages;
    for (size_t user : value.users)
      stages.insert(labels[user]);
    if (stages.empty())
      continue;
    int64_t home = value.maker < 0 ? *stages.begin() : labels[value.maker];
    for (int64_t stage : stages)
      if (rankOfStage[stage] != rankOfStage[home])
        bytes += value.bytes;
  }
  return bytes;
}

/// Moves one op over the boundary behind stage `boundary`: the first of the
/// next stage to it if `isLater`, else its own last one to the next. False if
/// that would leave a stage without ops.
bool StageProposer::moveNext(StageLabels &labels, int64_t boundary,
                             bool isLater) const {
  int64_t from = isLater ? boundary + 1 : boundary;
  if (llvm::count(labels, from) < 2)
    return false;
  if (isLater)
    *llvm::find(labels, from) = boundary;
  else
    *llvm::find(llvm::reverse(labels), from) = boundary + 1;
  return true;
}

std::vector<StageLabels> StageProposer::propose(int64_t from, int64_t to,
                                                size_t limit) const {
  struct Proposal {
    size_t distance;
    int64_t bytes;
    StageLabels labels;
  };
  std::vector<Proposal> proposals;
  auto [first, last] = std::minmax(from, to);
  for (int64_t boundary = first; boundary < last; ++boundary)
    for (bool isLater : {false, true}) {
      StageLabels labels = now;
      int64_t least = getSentBytes(now);
      for (size_t distance = 1;
           distance <= maxMovedOps && moveNext(labels, boundary, isLater);
           ++distance) {
        int64_t bytes = getSentBytes(labels);
        if (bytes < least)
          proposals.push_back({distance, bytes, labels});
        least = std::min(least, bytes);
      }
    }
  llvm::stable_sort(proposals, [](const Proposal &lhs, const Proposal &rhs) {
    return std::tie(lhs.distance, lhs.bytes) <
           std::tie(rhs.distance, rhs.bytes);
  });
  std::vector<StageLabels> labels;
  for (Proposal &proposal : proposals)
    if (labels.size() < limit)
      labels.push_back(std::move(proposal.labels));
  return labels;
}
