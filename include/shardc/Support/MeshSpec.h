//===- MeshSpec.h - Meshes as text ------------------------------*- C++ -*-===//
//
// The form in which command lines name meshes: "data=4,model=2". Pure
// functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_MESHSPEC_H
#define SHARDC_SUPPORT_MESHSPEC_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// The most devices that a mesh has; the runtime refuses plans for more.
constexpr int64_t maxMeshDevices = int64_t(1) << 20;

/// Axis names with their sizes in devices, outermost first.
using MeshSpec = std::vector<std::pair<std::string, int64_t>>;

/// Reads "data=4,model=2": distinct names that are identifiers, sizes of at
/// least 1, at most maxMeshDevices. On failure `error` names the fault and the
/// expected form.
std::optional<MeshSpec> parseMeshSpec(const std::string &text,
                                      std::string &error);

/// The text of `mesh`, in the form that `parseMeshSpec` reads.
std::string toString(const MeshSpec &mesh);

} // namespace shardc

#endif // SHARDC_SUPPORT_MESHSPEC_H
