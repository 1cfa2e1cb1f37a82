//===- PlantFault.cpp - Possible faults of a partitioner ------------------===//

#include "PlantFault.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <random>
#include <vector>

using namespace mlir;
using namespace shardc;

namespace {

struct Fault {
  Operation *op;
  std::string what;
  std::function<void()> plant;
};

/// All faults that can be planted in a module.
class Faults {
public:
  explicit Faults(ModuleOp module) : mesh(*module.getOps<MeshOp>().begin()) {
    for (auto function : module.getOps<func::FuncOp>())
      for (Operation &op : function.getBody().front())
        collect(&op);
  }

  std::vector<Fault> list;

private:
  void add(Operation *op, const char *what, std::function<void()> plant) {
    list.push_back({op, what, std::move(plant)});
  }

  void collect(Operation *op) {
    if (isa<AllReduceOp, MaskOp, CollectivePermuteOp>(op))
      add(op, "left out", [op] {
        op->replaceAllUsesWith(op->getOperands());
        op->erase();
      });
    auto reduce = dyn_cast<AllReduceOp>(op);
    if (reduce && reduce.getKind() == ReductionKind::Sum)
      add(op, "done twice", [op] {
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        Operation *again = builder.clone(*op);
        op->replaceAllUsesWith(again->getResults());
        again->setOperands(op->getResults());
      });
    if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceOp, AllToAllOp>(op))
      collectAxes(op);
    if (auto iota = dyn_cast<IotaOp>(op);
        iota && isSharded(iota.getShard()) &&
        mesh.getNumShards(iota.getShard()->getAxes(iota.getDim())) > 1)
      add(op, "of local indices", [iota]() mutable { iota.removeShardAttr(); });
    if (auto random = dyn_cast<RandomUniformOp>(op);
        random && isSharded(random.getShard()))
      add(op, "of local indices", [random]() mutable {
        random.removeShardAttr();
        random.removeGlobalShapeAttr();
      });
  }

  bool isSharded(std::optional<ShardingAttr> shard) {
    return shard && llvm::any_of(shard->getDims(), [&](DimShardingAttr dim) {
             return mesh.getNumShards(dim.getAxes()) > 1;
           });
  }

  /// Another axis of the same size, or the axes in reverse.
  void collectAxes(Operation *op) {
    auto axes = op->getAttrOfType<ArrayAttr>("axes");
    SmallVector<Attribute> reversed(llvm::reverse(axes.getValue()));
    // Of a dimension of one element the first device has the shard in any
    // order.
    bool moves = op->getOperand(0).getType() != op->getResult(0).getType();
    if (!isa<AllReduceOp>(op) && countLarge(axes) > 1 && moves)
      add(op, "in another order", [op, reversed] {
        op->setAttr("axes", ArrayAttr::get(op->getContext(), reversed));
      });
    for (auto other : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
      auto old = cast<StringAttr>(axes[0]);
      if (other.getSize() < 2 || llvm::is_contained(axes, other.getName()) ||
          other.getSize() != mesh.getAxisSize(old.getValue()))
        continue;
      SmallVector<Attribute> replaced(axes.getValue());
      replaced[0] = other.getName();
      add(op, "over another axis", [op, replaced] {
        op->setAttr("axes", ArrayAttr::get(op->getContext(), replaced));
      });
    }
  }

  int64_t countLarge(ArrayAttr axes) {
    return llvm::count_if(axes.getAsRange<StringAttr>(), [&](StringAttr axis) {
      return mesh.getAxisSize(axis.getValue()) > 1;
    });
  }

  MeshOp mesh;
};

} // namespace

std::string shardc::test::plantFault(ModuleOp module, uint64_t seed) {
  Faults faults(module);
  if (faults.list.empty())
    return "";
  std::mt19937_64 random(seed);
  Fault &fault = faults.list[random() % faults.list.size()];
  std::string text;
  llvm::raw_string_ostream(text) << *fault.op << " " << fault.what;
  fault.plant();
  return text;
}
