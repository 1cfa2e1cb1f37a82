//===- DeviceCoordinates.cpp - Which shard a device has -------------------===//

#include "shardc/Conversion/KernelEmitter/DeviceCoordinates.h"

#include "shardc/Conversion/KernelEmitter/BufferAccess.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

using namespace mlir;

namespace shardc {

Value DeviceCoordinates::loadContext(int64_t position) {
  Value address =
      buildAddress(loops.builder, loops.loc, context,
                   loops.builder.getI64Type(), loops.constantI64(position));
  return loops.builder.create<LLVM::LoadOp>(
      loops.loc, loops.builder.getI64Type(), address, 8);
}

Value DeviceCoordinates::getShardIndex(ArrayRef<StringAttr> axes) {
  Value result;
  for (StringAttr axis : axes) {
    int64_t number = mesh.getAxisIndex(axis.getValue());
    axesRead.insert(number);
    Value coordinate = loadContext(number);
    if (!result) {
      result = coordinate;
      continue;
    }
    Value size = loops.constantI64(mesh.getAxisSize(axis.getValue()));
    result = loops.math.add(loops.math.mul(result, size), coordinate);
  }
  return result ? result : loops.constantI64(0);
}

Value DeviceCoordinates::getGlobalPlaces(
    Value result, int64_t dim, const Index &index,
    std::optional<ShardingAttr> shard,
    std::optional<ArrayRef<int64_t>> microbatch) {
  Value places = loops.getPlaces(index);
  int64_t size = getTensorShape(result)[dim];
  if (shard)
    places = loops.math.add(places,
                            loops.math.mul(getShardIndex(shard->getAxes(dim)),
                                           loops.constantI64(size)));
  if (!microbatch)
    return places;
  int64_t count = microbatch->front(), rows = microbatch->back();
  // places / rows · count · rows + run · rows + places mod rows.
  Value block = loops.builder.create<arith::DivUIOp>(
      loops.loc, places, loops.math.constantLike(places, rows));
  Value before = loops.math.mul(
      block, loops.math.constantLike(places, (count - 1) * rows));
  Value run = loadContext(mesh.getAxes().size() + 1);
  Value start = loops.math.mul(run, loops.constantI64(rows));
  return loops.math.add(loops.math.add(places, before), start);
}

} // namespace shardc
