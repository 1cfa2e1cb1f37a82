//===- VirtualGpu.h - Collectives of one GPU under the suite ----*- C++ -*-===//

#ifndef SHARDC_RT_CTS_VIRTUALGPU_H
#define SHARDC_RT_CTS_VIRTUALGPU_H

#include "collectives/Collectives.h"

namespace shardc::rt::test {

/// The collectives between virtual devices of a GPU, for buffers of the host:
/// the one task copies operands to the GPU, runs the collective there and
/// copies results back. The driver is the one that SHARDC_LIBCUDA names, or
/// else the fake. Null if there is none.
std::unique_ptr<Collectives> createVirtualGpuCollectives(const Mesh &mesh);

} // namespace shardc::rt::test

#endif // SHARDC_RT_CTS_VIRTUALGPU_H
