//===- FitMemory.cpp - The cheapest plan that fits ------------------------===//

#include "FitMemory.h"

#include "RunAside.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

/// The price of memory is first this part of the plan's cost, if all of its
/// memory is paid for; if a plan costs nothing any price will do.
constexpr double firstPrice = 1.0 / 1024, anyPrice = 1;
/// How it is raised, how often, and how often the last raise is halved, as a
/// factor.
constexpr double raise = 4;
constexpr int numRaises = 10, numHalvings = 4;

namespace {

/// A plan as tried on a copy.
struct Trial {
  double price = 0;
  /// After `propagate`.
  OwningOpRef<ModuleOp> module = {};
  int64_t peak = 0;
};

class FitMemoryPass
    : public PassWrapper<FitMemoryPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FitMemoryPass)

  explicit FitMemoryPass(const CompileOptions &options)
      : options(options), limit(options.deviceMemory) {}

  StringRef getName() const override { return "FitMemory"; }

  void runOnOperation() override {
    FailureOr<Trial> cheapest = attempt(0);
    if (failed(cheapest))
      return signalPassFailure();
    if (cheapest->peak <= limit)
      return take(*cheapest, *cheapest);
    double price = firstPrice * getCost(*cheapest->module) / cheapest->peak;
    if (price == 0)
      price = anyPrice;
    int64_t least = cheapest->peak;
    FailureOr<Trial> fitting = failure();
    for (int number = 0; number <= numRaises; ++number) {
      price *= number ? raise : 1;
      fitting = attempt(price);
      if (failed(fitting))
        return signalPassFailure();
      least = std::min(least, fitting->peak);
      if (fitting->peak <= limit)
        break;
    }
    if (fitting->peak > limit)
      return refuse(least, *cheapest, price);
    double below = price / raise;
    for (int halving = 0; halving < numHalvings; ++halving) {
      double middle = std::sqrt(below * price);
      FailureOr<Trial> between = attempt(middle);
      if (failed(between))
        return signalPassFailure();
      if (between->peak > limit) {
        below = middle;
        continue;
      }
      price = middle;
      if (getCost(*between->module) <= getCost(*fitting->module))
        fitting = std::move(between);
    }
    take(*fitting, *cheapest);
  }

private:
  /// No plan tried fits; says whether one would if weights, which may be what
  /// takes the memory, were gathered again.
  void refuse(int64_t least, const Trial &cheapest, double lastPrice) {
    auto diagnostic = getOperation().emitError("a device has ")
                      << limit << " bytes of memory (--device-memory); of the "
                      << "plans tried none needs less than " << least
                      << ", the cheapest " << cheapest.peak;
    signalPassFailure();
    if (options.regather)
      return;
    options.regather = true;
    FailureOr<Trial> other = attempt(lastPrice);
    if (succeeded(other) && other->peak < least)
      diagnostic << "; with --regather one needs " << other->peak;
  }

  static CostAttr getCostAttr(func::FuncOp function) {
    return function->getAttrOfType<CostAttr>("shardc.cost");
  }

  static double getCost(ModuleOp module) {
    double cost = 0;
    for (auto function : module.getOps<func::FuncOp>())
      if (CostAttr attr = getCostAttr(function))
        cost += attr.getCost().getValueAsDouble();
    return cost;
  }

  /// The plan of least cost if each byte has `price`, and what it needs.
  FailureOr<Trial> attempt(double price) {
    CompileOptions priced = options;
    priced.memoryPrice = price;
    Trial trial{price};
    trial.module = getOperation().clone();
    int propagate = getPhaseIndex("propagate");
    std::string error = runAside(*trial.module, propagate, propagate, priced);
    OwningOpRef<ModuleOp> planned = trial.module->clone();
    if (error.empty())
      error =
          runAside(*planned, propagate + 1, getPhaseIndex("memory"), priced);
    if (!error.empty()) {
      getOperation().emitError("the cheapest plan is not known: ") << error;
      return failure();
    }
    trial.peak =
        (*planned)->getAttrOfType<IntegerAttr>("shardc.arena_bytes").getInt();
    return trial;
  }

  /// Propagates once more as in `trial`, for all to see. No plan costs less
  /// than the bound of the cheapest one, whether it fits or not.
  void take(const Trial &trial, Trial &cheapest) {
    CompileOptions taken = options;
    taken.deviceMemory = 0;
    taken.memoryPrice = trial.price;
    CompileState unused;
    OpPassManager manager(ModuleOp::getOperationName());
    getPhases()[getPhaseIndex("propagate")].build(manager, taken, unused);
    if (failed(runPipeline(manager, getOperation())))
      return signalPassFailure();
    for (auto [function, bound] :
         llvm::zip_equal(getOperation().getOps<func::FuncOp>(),
                         cheapest.module->getOps<func::FuncOp>())) {
      CostAttr cost = getCostAttr(function), least = getCostAttr(bound);
      if (cost && least)
        function->setAttr("shardc.cost",
                          CostAttr::get(&getContext(), cost.getObjective(),
                                        cost.getCost(), least.getAtLeast(),
                                        FloatAttr()));
    }
  }

  CompileOptions options;
  int64_t limit;
};

} // namespace

std::unique_ptr<Pass>
shardc::createFitMemoryPass(const CompileOptions &options) {
  return std::make_unique<FitMemoryPass>(options);
}
