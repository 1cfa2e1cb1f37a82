//===- ShardingsReport.cpp - The storage shardings of a program -----------===//

#include "shardc/Report/ShardingsReport.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace shardc;

ShardingsReport shardc::getShardingsReport(func::FuncOp function, MeshOp mesh) {
  ShardingsReport report;
  report.mesh = getMeshAxes(mesh);
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
    if (!type)
      continue;
    ShardingEntry entry;
    StringRef name = getRoleName(function, index);
    entry.name = name.empty() ? "%" + std::to_string(index) : name.str();
    entry.role = getRoleKind(function.getArgAttr(index, roleAttrName)).str();
    llvm::raw_string_ostream(entry.type) << type.getElementType();
    ArrayRef<int64_t> shape = type.getShape();
    if (auto global = function.getArgAttrOfType<DenseI64ArrayAttr>(
            index, globalShapeAttrName))
      shape = global.asArrayRef();
    entry.globalShape.assign(shape.begin(), shape.end());
    entry.layout = Layout(shape.size());
    if (auto sharding =
            function.getArgAttrOfType<ShardingAttr>(index, shardingAttrName))
      entry.layout = getLayout(sharding, report.mesh);
    entry.localShape = entry.layout.getLocalShape(shape, report.mesh);
    entry.bytesPerDevice = entry.layout.getLocalElements(shape, report.mesh) *
                           getElementBytes(type.getElementType());
    if (auto rows =
            function.getArgAttrOfType<IntegerAttr>(index, unpaddedRowsAttrName))
      entry.globalShape.front() = rows.getInt();
    report.tensors.push_back(std::move(entry));
  }
  return report;
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(shape, os);
  os << ']';
  return text;
}

llvm::json::Array shardc::toJson(const ShardingsReport &report) {
  llvm::json::Array tensors;
  for (const ShardingEntry &entry : report.tensors)
    tensors.push_back(llvm::json::Object{
        {"name", entry.name},
        {"role", entry.role},
        {"type", entry.type},
        {"global_shape", llvm::json::Array(entry.globalShape)},
        {"sharding", toString(entry.layout, report.mesh)},
        {"local_shape", llvm::json::Array(entry.localShape)},
        {"bytes_per_device", entry.bytesPerDevice}});
  return tensors;
}

void shardc::print(const ShardingsReport &report, llvm::raw_ostream &os) {
  constexpr const char *row = "{0,-12} {1,-10} {2,-5} {3,-16} {4,-28} {5,-16} "
                              "{6,14}\n";
  os << llvm::formatv(row, "tensor", "role", "type", "global shape", "sharding",
                      "local shape", "bytes/device");
  for (const ShardingEntry &entry : report.tensors)
    os << llvm::formatv(row, entry.name, entry.role, entry.type,
                        shapeText(entry.globalShape),
                        toString(entry.layout, report.mesh),
                        shapeText(entry.localShape), entry.bytesPerDevice);
  std::set<std::pair<std::vector<int64_t>, Layout>> drawn;
  for (const ShardingEntry &entry : report.tensors) {
    std::vector<int64_t> shape(entry.globalShape.begin(),
                               entry.globalShape.end());
    if (entry.layout.isReplicated() ||
        !drawn.emplace(shape, entry.layout).second)
      continue;
    os << '\n'
       << entry.name << ' ' << shapeText(entry.globalShape) << ' '
       << toString(entry.layout, report.mesh) << '\n'
       << drawSharding(entry.globalShape, entry.localShape, entry.layout,
                       report.mesh);
  }
}
