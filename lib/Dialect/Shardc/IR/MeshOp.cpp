//===- MeshOp.cpp - The device mesh ---------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Support/MeshSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;

SmallVector<MeshAxisAttr> MeshOp::getLegalAxes() {
  SmallVector<MeshAxisAttr> axes;
  if (ArrayAttr attrs = getAxesAttr())
    for (Attribute attr : attrs)
      if (auto axis = dyn_cast<MeshAxisAttr>(attr))
        axes.push_back(axis);
  return axes;
}

int64_t MeshOp::getAxisSize(StringRef name) {
  for (MeshAxisAttr axis : getLegalAxes())
    if (axis.getName().getValue() == name)
      return axis.getSize();
  return 0;
}

int64_t MeshOp::getAxisIndex(StringRef name) {
  for (auto [index, axis] :
       llvm::enumerate(getAxes().getAsRange<MeshAxisAttr>()))
    if (axis.getName().getValue() == name)
      return index;
  return -1;
}

int64_t MeshOp::getNumShards(ArrayRef<StringAttr> axes) {
  int64_t shards = 1;
  for (StringAttr axis : axes)
    if (DimShardingAttr::getGapSize(axis) == 0)
      shards *= getAxisSize(axis.getValue());
  return shards;
}

int64_t MeshOp::getNumDevices() {
  int64_t devices = 1;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    devices *= axis.getSize();
  return devices;
}

// @mesh <["data" = 4, "model" = 2]>
ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      parser.parseLess())
    return failure();
  SmallVector<Attribute> axes;
  auto parseAxis = [&]() -> ParseResult {
    std::string axis;
    int64_t size = 0;
    if (parser.parseString(&axis) || parser.parseEqual() ||
        parser.parseInteger(size))
      return failure();
    axes.push_back(MeshAxisAttr::get(
        parser.getContext(), parser.getBuilder().getStringAttr(axis), size));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis) ||
      parser.parseGreater() || parser.parseOptionalAttrDict(result.attributes))
    return failure();
  result.addAttribute("axes", parser.getBuilder().getArrayAttr(axes));
  return success();
}

void MeshOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << " <[";
  llvm::interleaveComma(getAxes().getAsRange<MeshAxisAttr>(), printer,
                        [&](MeshAxisAttr axis) {
                          printer << axis.getName() << " = " << axis.getSize();
                        });
  printer << "]>";
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {SymbolTable::getSymbolAttrName(), "axes"});
}

LogicalResult MeshOp::verify() {
  llvm::StringSet<> names;
  int64_t devices = 1;
  for (Attribute attr : getAxes()) {
    auto axis = dyn_cast<MeshAxisAttr>(attr);
    if (!axis)
      return emitOpError("C1: every axis must be a name and a size");
    if (axis.getName().getValue().empty() ||
        !names.insert(axis.getName().getValue()).second)
      return emitOpError("C1: axis names must be distinct and not empty, got ")
             << axis.getName() << (axis.getName().empty() ? "" : " twice");
    if (axis.getName().getValue().starts_with("*"))
      return emitOpError("C1: axis names must not start with '*', got ")
             << axis.getName();
    if (axis.getSize() < 1)
      return emitOpError("C1: axis ")
             << axis.getName() << " has size " << axis.getSize()
             << ", expected at least 1";
    if (axis.getSize() > maxMeshDevices / devices)
      return emitOpError("C2: the mesh has more than ")
             << maxMeshDevices << " devices";
    devices *= axis.getSize();
  }
  for (auto other : (*this)->getParentOfType<ModuleOp>().getOps<MeshOp>())
    if (other != *this && other->isBeforeInBlock(*this))
      return emitOpError("C3: a module has one mesh, this is another")
                 .attachNote(other.getLoc())
             << "the first mesh is here";
  return success();
}
