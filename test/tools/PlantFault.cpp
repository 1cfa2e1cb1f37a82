//===- PlantFault.cpp - Possible faults of a partitioner ------------------===//

#include "PlantFault.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/PipelineSchedules/ScheduleText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <random>
#include <vector>

using namespace mlir;
using namespace shardc;
using test::Fault;

namespace {

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

namespace {

/// All faults that can be planted in the programs of ranks.
class RankFaults {
public:
  explicit RankFaults(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(rankAttrName)) {
        lastSend = nullptr;
        latest.clear();
        function.walk<WalkOrder::PreOrder>([&](Operation *op) { collect(op); });
      }
  }

  std::vector<Fault> list;

private:
  void add(Operation *op, const char *what, std::function<void()> plant) {
    list.push_back({op, what, std::move(plant)});
  }

  static void addToNumber(Operation *op, StringRef name, int64_t number,
                          int64_t count) {
    auto value = op->getAttrOfType<IntegerAttr>(name);
    op->setAttr(name, IntegerAttr::get(value.getType(),
                                       (value.getInt() + number) % count));
  }

  void collect(Operation *op) {
    if (auto send = dyn_cast<SendOp>(op)) {
      add(op, "to the next rank",
          [op] { addToNumber(op, "peer", 1, 1 << 20); });
      // In the place of the one before, if that has the same types.
      if (SendOp other = lastSend;
          other && other.getPeer() == send.getPeer() &&
          other.getOperandTypes() == send.getOperandTypes())
        add(op, "in the place of the one before", [send, other]() mutable {
          uint64_t number = send.getMessage();
          send.setMessage(other.getMessage());
          other.setMessage(number);
        });
      lastSend = send;
    }
    if (isa<ReceiveOp>(op))
      add(op, "from the next rank",
          [op] { addToNumber(op, "peer", 1, 1 << 20); });
    if (auto rows = dyn_cast<RowsOp>(op); rows && rows.getCount() > 1)
      add(op, "of the next microbatch", [op, count = rows.getCount()] {
        addToNumber(op, "number", 1, static_cast<int64_t>(count));
      });
    // The addition to a sum has no number.
    PipelineTask task{TaskKind::Forward, 0, 0};
    auto text = op->getParentOp()->getAttrOfType<StringAttr>(taskAttrName);
    if (auto sum = dyn_cast<AddOp>(op);
        sum && !op->hasAttr(idAttrName) && text &&
        readPipelineTask(text.getValue(), task)) {
      add(op, "without the summand", [sum]() mutable {
        sum.getResult().replaceAllUsesWith(sum.getLhs());
      });
      if (task.microbatch > 0)
        add(op, "without the sum so far", [sum]() mutable {
          sum.getResult().replaceAllUsesWith(sum.getRhs());
        });
    }
    if (auto wait = dyn_cast<CollectiveWaitOp>(op)) {
      auto start = wait.getHandle().getDefiningOp<CollectiveStartOp>();
      if (isOverPipeline(&start.getBody().front().front()))
        add(op, "with the summand of the rank alone", [wait, start]() mutable {
          wait->replaceAllUsesWith(start.getOperands());
        });
    }
    if (auto kernel = dyn_cast<KernelOp>(op))
      collectOperands(kernel);
  }

  /// Values of the same type that the same kernel has for a microbatch before.
  void collectOperands(KernelOp kernel) {
    if (!kernel->hasAttr(taskAttrName))
      return;
    Operation *&before = latest[kernel.getLoc()];
    if (before && before->getOperandTypes() == kernel->getOperandTypes() &&
        before->getAttr(taskAttrName) != kernel->getAttr(taskAttrName))
      for (OpOperand &operand : kernel->getOpOperands()) {
        Value other = before->getOperand(operand.getOperandNumber());
        if (other != operand.get())
          add(kernel, "with an operand of the microbatch before",
              [kernel, index = operand.getOperandNumber(), other]() mutable {
                kernel->setOperand(index, other);
              });
      }
    before = kernel;
  }

  SendOp lastSend;
  /// By location the last kernel.
  llvm::DenseMap<Location, Operation *> latest;
};

} // namespace

std::vector<Fault> shardc::test::getRankFaults(ModuleOp module) {
  return RankFaults(module).list;
}
