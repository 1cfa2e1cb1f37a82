//===- NcclGpus.h - Collectives by NCCL under the suite ---------*- C++ -*-===//

#ifndef SHARDC_RT_CTS_NCCLGPUS_H
#define SHARDC_RT_CTS_NCCLGPUS_H

#include "collectives/Collectives.h"

namespace shardc::rt::test {

/// The collectives between GPUs, for buffers of the host: the one task copies
/// operands to them, runs the collective there and copies results back. Started
/// by torchrun, mpirun or srun, every process holds one device of the mesh and
/// learns the results of the others. Driver and NCCL are those that
/// SHARDC_LIBCUDA and SHARDC_LIBNCCL name, or else the fake, which has as
/// many GPUs as the mesh has devices. Null where the mesh is not that of the
/// processes, or has more devices than there are GPUs.
std::unique_ptr<Collectives> createNcclCollectives(const Mesh &mesh);

} // namespace shardc::rt::test

#endif // SHARDC_RT_CTS_NCCLGPUS_H
