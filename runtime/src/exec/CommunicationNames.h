//===- CommunicationNames.h - Communication in words ------------*- C++ -*-===//
//
// What errors, traces and profiles call collectives and messages.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_COMMUNICATIONNAMES_H
#define SHARDC_RT_SRC_EXEC_COMMUNICATIONNAMES_H

#include "base/Mesh.h"
#include "plan/PlanSpec.h"

#include <string>

namespace shardc::rt {

/// "all_reduce over data".
std::string nameOf(const CollectiveStartCommand &collective, const Mesh &mesh);

/// "all_reduce over data, mlp.mlir:7:5", of the collective that command `start`
/// of `program` starts.
std::string collectiveInWords(const ProgramSpec &program, const Mesh &mesh,
                              uint32_t start);

/// "receive from stage rank 0, message 3, for F of microbatch 2,
/// mlp.mlir:7:5", of the message that command `start` of `program` starts and
/// `wait` waits for.
std::string messageInWords(const ProgramSpec &program, uint32_t start,
                           uint32_t wait);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_COMMUNICATIONNAMES_H
