//===- Meshes.cpp - Meshes and shardings of sdy ---------------------------===//

#include "Meshes.h"
#include "OpaqueText.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace shardc;

/// The axes of #sdy.mesh<["data"=4, "model"=2]>.
static FailureOr<SmallVector<std::pair<StringRef, int64_t>>>
readAxes(Operation *op) {
  SmallVector<std::pair<StringRef, int64_t>> axes;
  StringRef text = getOpaqueText(op->getAttr("mesh"));
  // One device, to which a callback of Python is bound.
  if (text.starts_with("[]"))
    return axes;
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
    axes.emplace_back(name, devices);
  }
  return axes;
}

FailureOr<Meshes> Meshes::read(ModuleOp source) {
  Meshes found;
  for (Operation &op : *source.getBody()) {
    if (op.getName().getStringRef() != "sdy.mesh")
      continue;
    FailureOr<Axes> axes = readAxes(&op);
    if (failed(axes))
      return failure();
    if (axes->size() > found.main.size())
      found.main = *axes;
    if (auto name = op.getAttrOfType<StringAttr>("sym_name"))
      found.meshes[name.getValue()] = *axes;
  }
  return found;
}

MeshOp Meshes::build(Location loc, OpBuilder &builder) const {
  MLIRContext *context = builder.getContext();
  SmallVector<Attribute> axes;
  for (auto [name, size] : main)
    axes.push_back(
        MeshAxisAttr::get(context, StringAttr::get(context, name), size));
  if (axes.empty())
    axes.push_back(
        MeshAxisAttr::get(context, builder.getStringAttr("data"), 1));
  return builder.create<MeshOp>(loc, importedMeshName,
                                builder.getArrayAttr(axes));
}

std::optional<llvm::StringMap<SmallVector<StringRef>>>
Meshes::divide(const Axes &axes) const {
  llvm::StringMap<SmallVector<StringRef>> parts;
  size_t next = 0;
  for (auto [name, size] : axes) {
    SmallVector<StringRef> &made = parts[name];
    int64_t reached = 1;
    while (reached < size && next < main.size()) {
      made.push_back(main[next].first);
      reached *= main[next++].second;
    }
    if (reached != size)
      return std::nullopt;
    // Axes of one device belong to any.
    while (next < main.size() && main[next].second == 1)
      ++next;
  }
  if (next < main.size())
    return std::nullopt;
  return parts;
}

std::string
Meshes::translate(StringRef dims,
                  const llvm::StringMap<SmallVector<StringRef>> &parts) const {
  std::string text;
  while (!dims.empty()) {
    size_t open = dims.find('{');
    text += dims.take_front(open == StringRef::npos ? open : open + 1);
    if (open == StringRef::npos)
      break;
    dims = dims.drop_front(open + 1);
    StringRef inside = dims.take_until([](char c) { return c == '}'; });
    dims = dims.drop_front(inside.size());
    SmallVector<StringRef> entries;
    SmallVector<std::string> translated;
    inside.split(entries, ',', -1, /*KeepEmpty=*/false);
    for (StringRef entry : entries) {
      StringRef name = entry.trim();
      bool isAxis = name.consume_front("\"") && name.consume_back("\"");
      auto known = parts.find(name);
      if (!isAxis || known == parts.end()) {
        translated.push_back(entry.trim().str());
        continue;
      }
      for (StringRef part : known->second)
        translated.push_back(("\"" + part + "\"").str());
    }
    text += llvm::join(translated, ", ");
  }
  return text;
}

FailureOr<ShardingAttr>
Meshes::importSharding(Attribute attribute,
                       function_ref<InFlightDiagnostic()> emitError) const {
  StringRef text = getOpaqueText(attribute);
  // <@mesh_of_jax, [{"data"}, {}]>
  auto [name, dims] = text.split(',');
  if (!name.consume_front("@") || dims.empty())
    return emitError() << "the sharding " << attribute
                       << " is not supported: expected axes of a mesh for each "
                          "dimension";
  auto mesh = meshes.find(name);
  std::string translated = dims.str();
  // The empty mesh is that of scalars.
  if (mesh != meshes.end() && !mesh->second.empty() && mesh->second != main) {
    auto parts = divide(mesh->second);
    if (!parts)
      return emitError()
             << "the mesh of the sharding " << attribute
             << " is not supported beside that of other shardings: expected "
                "meshes of the same devices, of which one has the axes that "
                "those of the others are made of";
    translated = translate(dims, *parts);
  }
  std::string source =
      ("#shardc.sharding<@" + importedMeshName + "," + translated + ">").str();
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
