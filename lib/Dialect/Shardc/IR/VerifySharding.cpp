//===- VerifySharding.cpp - Legality of shardings -------------------------===//

#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;

MeshOp shardc::lookupMesh(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, name);
}

static UnevenPolicy getUnevenPolicy(ShardingAttr sharding, Operation *from) {
  if (sharding.getUneven())
    return *sharding.getUneven();
  auto module = isa<ModuleOp>(from) ? cast<ModuleOp>(from)
                                    : from->getParentOfType<ModuleOp>();
  if (module)
    if (auto policy = module->getAttrOfType<StringAttr>(unevenAttrName))
      return symbolizeUnevenPolicy(policy.getValue())
          .value_or(UnevenPolicy::Pad);
  return UnevenPolicy::Pad;
}

LogicalResult
shardc::verifyAxis(StringAttr axis, MeshOp mesh,
                   llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (mesh.getAxisSize(axis.getValue()) != 0)
    return success();
  auto diagnostic = emitError() << "uses axis " << axis << ", but mesh @"
                                << mesh.getSymName() << " has axes ";
  llvm::interleaveComma(
      mesh.getLegalAxes(), diagnostic,
      [&](MeshAxisAttr candidate) { diagnostic << candidate.getName(); });
  return diagnostic;
}

LogicalResult shardc::verifySharding(
    ShardingAttr sharding, RankedTensorType type, Operation *from,
    llvm::function_ref<InFlightDiagnostic()> emitError, bool allowGaps) {
  MeshOp mesh = lookupMesh(from, sharding.getMesh());
  if (!mesh)
    return emitError() << "names mesh " << sharding.getMesh()
                       << ", but the module has no `shardc.mesh` of that name";
  if (sharding.getRank() != type.getRank())
    return emitError() << "has " << sharding.getRank()
                       << " dimension shardings for a tensor of rank "
                       << type.getRank();

  llvm::StringSet<> seen;
  auto pipeline =
      mesh->getParentOp()->getAttrOfType<PipelineAttr>(pipelineAttrName);
  auto checkAxis = [&](StringAttr axis) -> LogicalResult {
    if (failed(verifyAxis(axis, mesh, emitError)))
      return failure();
    if (pipeline && pipeline.getAxis() == axis)
      return emitError() << "uses axis " << axis
                         << ", which is that of the stages of "
                            "`shardc.pipeline`; nothing is sharded over it";
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "uses axis " << axis
                         << " twice; an axis shards one dimension of a tensor";
    return success();
  };
  for (DimShardingAttr dim : sharding.getDims())
    for (StringAttr axis : dim.getAxes())
      if (!(allowGaps && DimShardingAttr::getGapSize(axis) > 0) &&
          failed(checkAxis(axis)))
        return failure();
  for (StringAttr axis : sharding.getReplicated())
    if (failed(checkAxis(axis)))
      return failure();
  for (StringAttr axis : sharding.getUnreduced())
    if (failed(checkAxis(axis)))
      return failure();

  if (getUnevenPolicy(sharding, from) == UnevenPolicy::Error)
    for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
      int64_t shards = mesh.getNumShards(dim.getAxes());
      if (type.getDimSize(index) % shards != 0)
        return emitError() << "shards dimension " << index << " of size "
                           << type.getDimSize(index) << " over " << shards
                           << " devices, which does not divide, and the "
                              "policy is uneven=error";
    }
  return success();
}
