//===- EvaluateCollective.cpp - Collectives by definition -----------------===//

#include "shardc/Interpreter/EvaluateCollective.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

using Group = std::vector<int64_t>;

/// Shard `index` of `whole` along `dim`, of `size` elements there.
static Tensor slice(const Tensor &whole, int64_t dim, int64_t index,
                    int64_t size, double padding) {
  SmallVector<int64_t, 3> shape = whole.shape;
  shape[dim] = size;
  Tensor shard(shape, padding);
  SmallVector<int64_t, 3> strides = getStrides(whole.shape);
  int64_t start = index * size;
  forEachPlace(shape, strides,
               [&](ArrayRef<int64_t> place, int64_t linear, int64_t offset) {
                 if (start + place[dim] < whole.shape[dim])
                   shard.data[linear] =
                       whole.data[offset + start * strides[dim]];
               });
  return shard;
}

/// The concatenation of `shards` along `dim`, cut to the first `size` elements
/// there.
static Tensor concatenate(ArrayRef<Tensor> shards, int64_t dim, int64_t size,
                          double padding) {
  SmallVector<int64_t, 3> shape = shards.front().shape;
  int64_t shard = shape[dim];
  shape[dim] = size;
  Tensor whole(shape, padding);
  SmallVector<int64_t, 3> strides = getStrides(shards.front().shape);
  forEachPlace(shape, strides,
               [&](ArrayRef<int64_t> place, int64_t linear, int64_t offset) {
                 int64_t index = place[dim] / shard;
                 whole.data[linear] =
                     shards[index].data[offset - index * shard * strides[dim]];
               });
  return whole;
}

static Tensor combineAll(const DeviceTensors &operand, const Group &group,
                         Combine combine) {
  Tensor result = operand[group.front()];
  std::vector<double> terms(group.size());
  for (size_t i = 0; i < result.data.size(); ++i) {
    for (size_t member = 0; member < group.size(); ++member)
      terms[member] = operand[group[member]].data[i];
    result.data[i] = combine(terms);
  }
  return result;
}

bool shardc::isCollective(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
             CollectivePermuteOp, SliceOp>(op);
}

AxisList shardc::getCollectiveAxes(Operation *op, const Devices &devices) {
  return devices.getAxes(op->getAttrOfType<ArrayAttr>("axes"));
}

std::optional<ReductionKind> shardc::getReduction(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getKind();
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return scatter.getKind();
  return std::nullopt;
}

DeviceTensors shardc::evaluateCollective(Operation *op, unsigned index,
                                         const DeviceTensors &operand,
                                         const Devices &devices, double padding,
                                         Combine combine) {
  AxisList axes = getCollectiveAxes(op, devices);
  std::vector<Group> groups = devices.getGroups(axes);
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(op->getResult(index).getType()).getShape();
  DeviceTensors results(operand.size());
  auto forEachMember = [&](auto visit) {
    for (const Group &group : groups)
      for (auto [position, device] : llvm::enumerate(group))
        results[device] = visit(group, position);
  };
  auto collect = [&](const Group &group, auto get) {
    std::vector<Tensor> tensors;
    for (int64_t device : group)
      tensors.push_back(get(operand[device]));
    return tensors;
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<AllReduceOp>([&](auto) {
        for (const Group &group : groups) {
          Tensor reduced = combineAll(operand, group, combine);
          for (int64_t device : group)
            results[device] = reduced;
        }
      })
      .Case<ReduceScatterOp>([&](ReduceScatterOp scatter) {
        int64_t dim = scatter.getDims()[index];
        for (const Group &group : groups) {
          Tensor reduced = combineAll(operand, group, combine);
          for (auto [position, device] : llvm::enumerate(group))
            results[device] =
                slice(reduced, dim, position, shape[dim], padding);
        }
      })
      .Case<AllGatherOp>([&](AllGatherOp gather) {
        int64_t dim = gather.getDims()[index];
        for (const Group &group : groups) {
          std::vector<Tensor> shards =
              collect(group, [](const Tensor &shard) { return shard; });
          Tensor whole = concatenate(shards, dim, shape[dim], padding);
          for (int64_t device : group)
            results[device] = whole;
        }
      })
      .Case<AllToAllOp>([&](AllToAllOp exchange) {
        int64_t split = exchange.getSplitDim(),
                concat = exchange.getConcatDim();
        forEachMember([&](const Group &group, int64_t position) {
          return concatenate(collect(group,
                                     [&](const Tensor &tensor) {
                                       return slice(tensor, split, position,
                                                    shape[split], padding);
                                     }),
                             concat, shape[concat], padding);
        });
      })
      .Case<CollectivePermuteOp>([&](CollectivePermuteOp permute) {
        AxisList target = devices.getAxes(permute.getTargetAxes());
        forEachMember([&](const Group &group, int64_t position) {
          int64_t source = devices.getIndex(group[position], target);
          if (permute.getSources())
            source = (*permute.getSources())[source];
          return operand[group[source]];
        });
      })
      .Case<SliceOp>([&](SliceOp op) {
        int64_t dim = op.getDim();
        forEachMember([&](const Group &group, int64_t position) {
          return slice(operand[group[position]], dim, position, shape[dim],
                       padding);
        });
      });
  return results;
}

DeviceTensors shardc::evaluateCollective(Operation *op, unsigned index,
                                         const DeviceTensors &operand,
                                         const Devices &devices) {
  bool isMax = getReduction(op) == ReductionKind::Max;
  return evaluateCollective(op, index, operand, devices,
                            std::numeric_limits<double>::quiet_NaN(),
                            [&](ArrayRef<double> terms) {
                              double result = terms.front();
                              for (double term : terms.drop_front())
                                result = !isMax ? result + term
                                         : std::isnan(term) || term > result
                                             ? term
                                             : result;
                              return result;
                            });
}
