//===- ModuleGraph.h - The sharding graph of a module ----------*- C++ -*-===//
//
// Builds a ShardingGraph from the functions of a module and remembers which
// value and op is which. Reads the module only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MODULEGRAPH_H
#define SHARDC_ANALYSIS_MODULEGRAPH_H

#include "shardc/Analysis/CollectivePrices.h"
#include "shardc/Analysis/ShardingGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

/// The name that the role of argument `index` gives it; empty without a role.
llvm::StringRef getRoleName(mlir::func::FuncOp function, unsigned index);

/// The mesh of `module`; emits an error and fails if there is none or it has
/// more than 64 axes.
mlir::FailureOr<MeshOp> getMesh(mlir::ModuleOp module);

/// Whether reshards of `module` may use axes that neither of their ends names:
/// its plan was searched for, `shardc.partition = "cheapest"`.
bool usesAllAxes(mlir::ModuleOp module);

/// What moving tensors of `function` costs a planner: bytes, or what
/// `shardc.seconds_per_byte` of the module says; only the collectives of
/// `shardc.starts` may be used, if it has that.
PartPrices getPartPrices(mlir::func::FuncOp function, const MeshAxes &mesh);

/// The part of the step in which `value` is made: that of the op that computes
/// it; of an argument, of the op that uses it first.
Part getPartMadeIn(mlir::Value value);

/// "file.mlir:12" for messages, without folders.
std::string getSourceLine(mlir::Location loc);

/// "path/file.mlir:12:3", or "" if `loc` has no file.
std::string getSourceText(mlir::Location loc);

class ModuleGraph {
public:
  /// A function and the graph values of what it takes and returns.
  struct Function {
    mlir::func::FuncOp op;
    llvm::SmallVector<int> arguments;
    llvm::SmallVector<int> results;
    /// Its ops are those from `firstOp` to before `endOp`.
    int firstOp = 0, endOp = 0;
  };

  /// Fails with an error at the place if an op has no sharding rule or
  /// annotations contradict each other.
  static mlir::FailureOr<ModuleGraph> build(mlir::ModuleOp module);

  ShardingGraph graph;
  llvm::SmallVector<Function, 2> functions;
  /// The IR of each graph op; null for ties of results.
  std::vector<mlir::Operation *> operations;
  MeshOp mesh;

private:
  mlir::LogicalResult addFunction(mlir::func::FuncOp function);
  mlir::LogicalResult addArgument(Function &function, unsigned index);
  void addResult(Function &function, unsigned index);
  mlir::LogicalResult addOp(mlir::Operation *op);
  mlir::LogicalResult addBody(AccumulateOp loop);
  int addValue(mlir::RankedTensorType type, ShardingAttr annotation,
               AnnotationClass annotationClass, std::string name);

  llvm::DenseMap<mlir::Value, int> ids;
  /// As tensors of their own.
  llvm::DenseMap<mlir::Value, int> tensors;
  /// Values of named arguments, and where they were first declared.
  llvm::StringMap<std::pair<int, mlir::BlockArgument>> named;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEGRAPH_H
