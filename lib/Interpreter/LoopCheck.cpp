//===- LoopCheck.cpp - Loops over microbatches ----------------------------===//
//
// A sum does not depend on the rows of the batch that a run takes, and devices
// take their own next rows. The global program is run on the same rows here, so
// that the values of each run can be compared.
//
//===----------------------------------------------------------------------===//

#include "FunctionCheck.h"

#include <map>

using namespace mlir;
using namespace shardc;

/// The rows of the global tensor that the local rows in `local` are, on any
/// device, each once, ascending.
static SmallVector<int64_t> getGlobalRows(const Placement &placement,
                                          ArrayRef<int64_t> globalShape,
                                          ArrayRef<int64_t> local) {
  int64_t size = getStrides(globalShape)[0];
  std::map<int64_t, int> rows;
  for (const Tensor &indices : placement.indices)
    for (double index : takeRows(indices, local).data)
      if (index >= 0)
        rows[static_cast<int64_t>(index) / size] = 0;
  return llvm::map_to_vector(rows, [](auto &row) { return row.first; });
}

LogicalResult FunctionCheck::runLoop(AccumulateOp loop) {
  auto id = loop->getAttrOfType<IntegerAttr>("shardc.id");
  Value known = id ? reference.find(id.getInt()) : Value();
  auto source = known ? known.getDefiningOp<AccumulateOp>() : AccumulateOp();
  if (!source)
    return loop.emitOpError("is not in the global program");
  for (Value operand : loop.getOperands())
    if (!values.count(operand))
      return loop.emitOpError("has an operand that is no value of the global "
                              "program");
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(source.getOperands()[0].getType()).getShape();

  SmallVector<DeviceTensors> sums(loop.getNumResults());
  SmallVector<RoundingBound> bounds(loop.getNumResults());
  auto count = static_cast<int64_t>(loop.getCount());
  for (int64_t run = 0; run < count; ++run) {
    auto local = llvm::to_vector(
        llvm::seq(run * loop.getRows(), (run + 1) * loop.getRows()));
    SmallVector<int64_t> rows =
        getGlobalRows(values[loop.getOperands()[0]].placement, shape, local);
    if (static_cast<int64_t>(rows.size()) != source.getRows())
      return loop.emitOpError("takes ")
             << rows.size() << " rows of the batch in run " << run
             << ", expected " << source.getRows();
    if (failed(reference.runBody(source, {run, rows})) ||
        failed(feedRows(loop, source, local, rows)) ||
        failed(runBlock(loop.getBody().front(), run)))
      return failure();
    for (auto [index, summand] :
         llvm::enumerate(loop.getYield().getOperands())) {
      const DeviceTensors &terms = tensors[summand];
      DeviceTensors &sum = sums[index];
      if (run == 0)
        sum.assign(terms.size(), Tensor(terms.front().shape, 0));
      for (auto [total, term] : llvm::zip_equal(sum, terms))
        for (auto [element, value] : llvm::zip_equal(total.data, term.data))
          element += value;
      RoundingBound bound;
      bound.isKnown = false;
      if (auto placed = values.find(summand); placed != values.end())
        bound = placed->second.bound;
      bounds[index].magnitude += bound.magnitude;
      bounds[index].quantum =
          run == 0 ? bound.quantum
                   : std::min(bounds[index].quantum, bound.quantum);
      bounds[index].roundings =
          std::max(bounds[index].roundings, bound.roundings + count);
      bounds[index].isKnown &= bound.isKnown;
    }
  }
  for (auto [index, summand] : llvm::enumerate(loop.getYield().getOperands())) {
    Value result = loop.getResult(index);
    tensors[result] = std::move(sums[index]);
    auto placed = values.find(summand);
    if (placed == values.end())
      continue;
    Tracked tracked{source.getResult(index), placed->second.placement,
                    bounds[index]};
    if (failed(check(loop, result, std::move(tracked))))
      return failure();
  }
  return success();
}

LogicalResult FunctionCheck::feedRows(AccumulateOp loop, AccumulateOp source,
                                      ArrayRef<int64_t> local,
                                      ArrayRef<int64_t> rows) {
  for (auto [index, operand] : llvm::enumerate(loop.getOperands())) {
    Value slice = loop.getSlices()[index];
    Value sourceSlice = source.getSlices()[index];
    Tracked tracked = values[operand];
    tracked.value = sourceSlice;
    int64_t size = getStrides(reference.get(sourceSlice).shape)[0];
    DeviceTensors &parts = tensors[slice];
    parts.clear();
    for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
      Tensor &indices = tracked.placement.indices[device];
      indices = takeRows(indices, local);
      // Rows of the batch become rows of the microbatch.
      for (double &element : indices.data) {
        if (element < 0)
          continue;
        auto global = static_cast<int64_t>(element);
        auto row = llvm::lower_bound(rows, global / size);
        if (row == rows.end() || *row != global / size)
          return loop.emitOpError("takes other rows of operand ")
                 << index << " than of operand 0 on device "
                 << devices.toString(device);
        element =
            static_cast<double>((row - rows.begin()) * size + global % size);
      }
    }
    for (const Tensor &whole : tensors[operand])
      parts.push_back(takeRows(whole, local));
    tracked.bound = measure(reference.get(sourceSlice));
    if (failed(check(loop, slice, std::move(tracked))))
      return failure();
  }
  return success();
}
