//===- ModuleGraph.h - The sharding graph of a module -----------*- C++ -*-===//
//
// Builds a ShardingGraph from the functions of a module and maps its values and
// ops back to the IR. Reads the module only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MODULEGRAPH_H
#define SHARDC_ANALYSIS_MODULEGRAPH_H

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Sharding/ShardingGraph.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

class ModuleGraph {
public:
  /// A function and the graph values of its arguments and results.
  struct Function {
    mlir::func::FuncOp op;
    llvm::SmallVector<int> arguments;
    llvm::SmallVector<int> results;
    /// Its ops are those from `firstOp` to before `endOp`.
    int firstOp = 0, endOp = 0;
  };

  /// Fails with an error at the place if an op has no sharding rule or
  /// annotations contradict each other. With `regathers` a weight is another
  /// tensor in the backward pass, with reshards of its own.
  static mlir::FailureOr<ModuleGraph> build(mlir::ModuleOp module,
                                            bool regathers = false);

  ShardingGraph graph;
  llvm::SmallVector<Function, 2> functions;
  /// The IR of each graph op; null for ties of results.
  std::vector<mlir::Operation *> operations;
  MeshOp mesh;

private:
  mlir::LogicalResult addFunction(mlir::func::FuncOp function);
  mlir::LogicalResult addArgument(Function &function, unsigned index);
  /// `names`: the function's arguments by name.
  void addResult(Function &function,
                 const llvm::StringMap<mlir::BlockArgument> &names,
                 unsigned index);
  mlir::LogicalResult addOp(mlir::Operation *op);
  mlir::LogicalResult addBody(AccumulateOp loop);
  /// A tensor of its own with the storage sharding of value `id`.
  int addTensor(int id);
  void addLateTensor(mlir::Value weight, GraphOp *convert = nullptr);
  /// The tensor as which `op` reads `operand`.
  int getTensor(mlir::Operation *op, mlir::Value operand);
  int addValue(mlir::RankedTensorType type, ShardingAttr annotation,
               AnnotationClass annotationClass, std::string name);

  llvm::DenseMap<mlir::Value, int> ids;
  /// As tensors of their own.
  llvm::DenseMap<mlir::Value, int> tensors;
  /// Weights as the backward pass reads them, if it gathers them again.
  llvm::DenseMap<mlir::Value, int> lateTensors;
  bool regathers = false;
  /// Values of named arguments, and where they were first declared.
  llvm::StringMap<std::pair<int, mlir::BlockArgument>> named;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEGRAPH_H
