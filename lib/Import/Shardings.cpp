//===- Shardings.cpp - Meshes and shardings of sdy ------------------------===//

#include "Lowering.h"
#include "OpaqueText.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace shardc;

FailureOr<ShardingAttr>
shardc::importSharding(Attribute attribute,
                       function_ref<InFlightDiagnostic()> emitError) {
  StringRef text = getOpaqueText(attribute);
  // <@mesh_of_jax, [{"data"}, {}]>: every mesh has the axes of `@mesh`.
  StringRef dims = text.drop_front(std::min(text.find(','), text.size()));
  if (!text.starts_with("@") || dims.empty())
    return emitError() << "the sharding " << attribute
                       << " is not supported: expected axes of a mesh for each "
                          "dimension";
  std::string source =
      ("#shardc.sharding<@" + importedMeshName + dims + ">").str();
  Attribute parsed;
  {
    // The error of the parser would name a text that the user does not see.
    ScopedDiagnosticHandler quiet(attribute.getContext(),
                                  [](Diagnostic &) { return success(); });
    parsed = parseAttribute(source, attribute.getContext());
  }
  if (auto sharding = dyn_cast_or_null<ShardingAttr>(parsed))
    return sharding;
  return emitError() << "the sharding " << attribute
                     << " is not supported: expected whole axes of a mesh, not "
                        "parts of axes";
}

/// The axes of #sdy.mesh<["data"=4, "model"=2]>.
static FailureOr<SmallVector<Attribute>> readAxes(Operation *op) {
  MLIRContext *context = op->getContext();
  SmallVector<Attribute> axes;
  StringRef text = getOpaqueText(op->getAttr("mesh"));
  auto fail = [&] {
    return emitError(op->getLoc())
           << "the mesh " << op->getAttr("mesh")
           << " is not supported: expected named axes and devices in their "
              "order, as jax.make_mesh(..., devices=jax.devices()) gives them";
  };
  if (!text.consume_front("[") || !text.consume_back("]"))
    return fail();
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, size] = part.trim().split('=');
    int64_t devices = 0;
    if (!name.consume_front("\"") || !name.consume_back("\"") ||
        size.getAsInteger(10, devices))
      return fail();
    axes.push_back(
        MeshAxisAttr::get(context, StringAttr::get(context, name), devices));
  }
  return axes;
}

FailureOr<MeshOp> shardc::importMesh(ModuleOp source, OpBuilder &builder) {
  SmallVector<Attribute> axes;
  Operation *first = nullptr;
  for (Operation &op : *source.getBody()) {
    if (op.getName().getStringRef() != "sdy.mesh")
      continue;
    FailureOr<SmallVector<Attribute>> found = readAxes(&op);
    if (failed(found))
      return failure();
    if (first && *found != axes && !found->empty())
      return emitError(op.getLoc())
             << "the program has meshes of different axes: expected one mesh";
    if (found->empty())
      continue;
    axes = *found;
    first = &op;
  }
  if (axes.empty())
    axes.push_back(MeshAxisAttr::get(source.getContext(),
                                     builder.getStringAttr("data"), 1));
  return builder.create<MeshOp>(source.getLoc(), importedMeshName,
                                builder.getArrayAttr(axes));
}
