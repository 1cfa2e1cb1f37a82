//===- ProcessesOfMpi.h - Collectives by MPI under the suite ----*- C++ -*-===//

#ifndef SHARDC_RT_CTS_PROCESSESOFMPI_H
#define SHARDC_RT_CTS_PROCESSESOFMPI_H

#include "collectives/Collectives.h"

namespace shardc::rt::test {

/// The collectives between processes that mpirun has started, each with
/// consecutive devices of the mesh. The last task tells all processes the
/// results of the others. Null without mpirun, and where the mesh has fewer
/// devices than there are processes or more than four for each.
std::unique_ptr<Collectives> createMpiCollectives(const Mesh &mesh);
/// The same, reading what the other processes have in place.
std::unique_ptr<Collectives> createSeenMpiCollectives(const Mesh &mesh);

} // namespace shardc::rt::test

#endif // SHARDC_RT_CTS_PROCESSESOFMPI_H
