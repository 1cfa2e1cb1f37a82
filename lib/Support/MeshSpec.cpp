//===- MeshSpec.cpp - Meshes as text --------------------------------------===//

#include "shardc/Support/MeshSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

static bool isIdentifier(StringRef name) {
  return !name.empty() && (isAlpha(name.front()) || name.front() == '_') &&
         all_of(name, [](char c) { return isAlnum(c) || c == '_'; });
}

std::optional<shardc::MeshSpec> shardc::parseMeshSpec(const std::string &text,
                                                      std::string &error) {
  MeshSpec mesh;
  int64_t devices = 1;
  SmallVector<StringRef> entries;
  StringRef(text).split(entries, ',');
  for (StringRef entry : entries) {
    StringRef name = entry.split('=').first.trim();
    StringRef size = entry.split('=').second.trim();
    int64_t count = 0;
    if (!isIdentifier(name)) {
      error = ("mesh '" + text + "': expected NAME=SIZE,... such as " +
               "data=4,model=2, found '" + entry.str() + "'");
      return std::nullopt;
    }
    if (size.getAsInteger(10, count) || count < 1) {
      error = "mesh '" + text + "': axis '" + name.str() +
              "' needs a size of at least 1, found '" + size.str() + "'";
      return std::nullopt;
    }
    if (any_of(mesh, [&](const auto &axis) { return axis.first == name; })) {
      error = "mesh '" + text + "': axis '" + name.str() + "' is given twice";
      return std::nullopt;
    }
    if (count > maxMeshDevices / devices) {
      error = "mesh '" + text + "' has more than " +
              std::to_string(maxMeshDevices) + " devices";
      return std::nullopt;
    }
    devices *= count;
    mesh.emplace_back(name.str(), count);
  }
  return mesh;
}

std::string shardc::toString(const MeshSpec &mesh) {
  std::string text;
  for (const auto &[name, size] : mesh)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}
