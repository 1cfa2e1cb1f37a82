//===- PlanTables.h - Tables of the plan from the IR ------------*- C++ -*-===//
//
// The pieces that BuildPlan.cpp puts together. Each writes into the builder and
// returns an offset in it. Not thread-safe; one builder per plan.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TARGET_PLAN_PLANTABLES_H
#define SHARDC_LIB_TARGET_PLAN_PLANTABLES_H

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include "plan_generated.h"

#include <optional>

namespace shardc {

namespace fb = ::shardc::rt::fb;

/// References that all tables share.
struct PlanContext {
  flatbuffers::FlatBufferBuilder &builder;
  MeshOp mesh;
  /// The machine of the time estimates.
  Machine machine;
  /// Symbols of kernels by their number.
  llvm::MapVector<mlir::StringAttr, uint32_t> kernels;
  /// Whether commands are on streams, ordered by events: for a GPU.
  bool hasStreams;
  /// The precision of GEMMs that the library computes.
  fb::Precision precision;
  /// Numbers of inputs and labels by their names, once they are written.
  llvm::StringMap<uint32_t> inputs;
};

fb::DType getDType(mlir::Type elementType);
std::vector<int64_t> getShapeVector(mlir::ArrayRef<int64_t> shape);
/// The sharding of a tensor of shape `shape`, of which a device holds a shard
/// of shape `local`.
flatbuffers::Offset<fb::Sharding> writeSharding(PlanContext &plan,
                                                ShardingAttr sharding,
                                                mlir::ArrayRef<int64_t> shape,
                                                mlir::ArrayRef<int64_t> local);
/// Indices of mesh axes.
std::vector<uint16_t> getAxisIndices(PlanContext &plan, mlir::ArrayAttr axes);

/// The part of the step that `op` belongs to.
fb::Part getPart(mlir::Operation *op);

/// The GEMM `gemm` on the buffers of its values, by `numbers`.
flatbuffers::Offset<fb::Gemm>
writeGemm(PlanContext &plan, GemmOp gemm,
          const llvm::DenseMap<mlir::Value, uint32_t> &numbers);

/// The collective `op`, started on buffers `operands` for `results`, and its
/// line of the communication report, which is number `report`.
flatbuffers::Offset<fb::CollectiveStart>
writeCollective(PlanContext &plan, mlir::Operation *op,
                mlir::ArrayRef<uint32_t> operands,
                mlir::ArrayRef<uint32_t> results, uint32_t report);
flatbuffers::Offset<fb::CollectiveReport>
writeCollectiveReport(PlanContext &plan, mlir::Operation *op);

/// The tensors that the arguments of the train step stand for; with a pipeline
/// those of the train steps of all ranks.
std::vector<flatbuffers::Offset<fb::Tensor>>
writeTensors(PlanContext &plan, mlir::ModuleOp module);

/// The tasks of a rank's program by their names, with their numbers, and as
/// tables with their estimated times. Empty for other functions.
llvm::StringMap<int32_t> getTaskNumbers(mlir::func::FuncOp function);
std::vector<flatbuffers::Offset<fb::Task>>
writeTasks(PlanContext &plan, mlir::func::FuncOp function);

/// The pipeline of `module`; null if it has none.
flatbuffers::Offset<fb::Pipeline> writePipeline(PlanContext &plan,
                                                mlir::ModuleOp module);

class MemoryReport;
flatbuffers::Offset<fb::MemoryReport>
writeMemoryReport(PlanContext &plan, const MemoryReport &report);

/// Result `index` of `function`, which has a name and is in buffer `buffer`.
flatbuffers::Offset<fb::Result> writeResult(PlanContext &plan,
                                            mlir::func::FuncOp function,
                                            unsigned index, uint32_t buffer);

/// FLOPs of the GEMMs in kernels, in all runs.
/// The estimated time of a step on the plan's machine; the effect of --regather
/// and the cost of the partition, each null if it is not known.
flatbuffers::Offset<fb::TimeEstimate>
writeTimeEstimate(PlanContext &plan, mlir::func::FuncOp function);
flatbuffers::Offset<fb::Regather> writeRegather(PlanContext &plan,
                                                mlir::func::FuncOp function);
flatbuffers::Offset<fb::PlanCost> writePlanCost(PlanContext &plan,
                                                mlir::func::FuncOp function);
/// What the function computes again; null if it has no backward pass or its
/// module no policy.
flatbuffers::Offset<fb::Recompute> writeRecompute(PlanContext &plan,
                                                  mlir::func::FuncOp function);

/// One function as a program.
flatbuffers::Offset<fb::Program> writeProgram(PlanContext &plan,
                                              mlir::func::FuncOp function);

/// The initialiser `init` of a tensor of global shape `shape`: variance scaling
/// as in jax.nn.initializers.
flatbuffers::Offset<fb::Initializer>
writeInitializer(PlanContext &plan, InitAttr init,
                 mlir::ArrayRef<int64_t> shape);

} // namespace shardc

#endif // SHARDC_LIB_TARGET_PLAN_PLANTABLES_H
