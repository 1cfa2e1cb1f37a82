//===- ShardingsReport.h - The storage shardings of a program ---*- C++ -*-===//
//
// Parameters, states, inputs and labels of a program with their storage
// shardings, and pictures of the slices that each device holds. Reads the IR
// only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_SHARDINGSREPORT_H
#define SHARDC_REPORT_SHARDINGSREPORT_H

#include "shardc/Sharding/Layout.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace shardc {

struct ShardingEntry {
  std::string name;
  /// "parameter", "state", "input", "label" or "argument".
  std::string role;
  /// "f32" and so on.
  std::string type;
  llvm::SmallVector<int64_t> globalShape;
  Layout layout;
  llvm::SmallVector<int64_t> localShape;
  /// Of a shard, padding included.
  int64_t bytesPerDevice;
};

struct ShardingsReport {
  MeshAxes mesh;
  /// In argument order.
  std::vector<ShardingEntry> tensors;
};

/// The report of `function`, before or after partitioning; arguments without a
/// sharding count as replicated.
ShardingsReport getShardingsReport(mlir::func::FuncOp function, MeshOp mesh);

/// `[{"name", "role", "type", "global_shape", "sharding", "local_shape",
///    "bytes_per_device"}, ...]`
llvm::json::Array toJson(const ShardingsReport &report);

/// A table, then one picture for each distinct division of a tensor.
void print(const ShardingsReport &report, llvm::raw_ostream &os);

/// A picture of a tensor of `shape` in shards of `localShape`: a grid of its
/// blocks over the last two dimensions, one grid per block of the leading ones,
/// each block with the devices that hold it (a replicated tensor: one block,
/// all devices). Long dimensions and device lists are abbreviated, so that the
/// size of the picture does not grow with the mesh.
std::string drawSharding(llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<int64_t> localShape,
                         const Layout &layout, const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_REPORT_SHARDINGSREPORT_H
