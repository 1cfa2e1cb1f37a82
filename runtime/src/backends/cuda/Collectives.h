//===- Collectives.h - Collectives that are issued to streams ---*- C++ -*-===//
//
// The interface of the ways to move data between devices that are GPUs, or
// parts of one. A collective is prepared when a plan is loaded and issued to
// the communication streams of the devices, where it may be captured.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVES_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVES_H

#include "backends/cuda/Communicators.h"
#include "backends/cuda/Stream.h"
#include "collectives/Collectives.h"

#include "absl/types/span.h"

#include <memory>

namespace shardc::rt::cuda {

/// A collective, or transfers, that can be issued many times.
class DeviceCollective {
public:
  virtual ~DeviceCollective() = default;
  /// Issues it; `streams` has the communication stream of each device that it
  /// was prepared for, and devices may share a stream. Work issued later to a
  /// device's stream sees the results, and no peer reads the operands any more.
  [[nodiscard]] virtual absl::Status
  issue(absl::Span<const Stream *const> streams) const = 0;
};

/// A region of a device's memory that another device gets.
struct DeviceTransfer {
  int64_t from, to;    ///< Devices of the mesh.
  CUdeviceptr in, out; ///< 0 on a device of another process.
  uint64_t bytes;      ///< At least 1.
};

/// A way of moving data between the devices of a mesh. All collectives and
/// transfers are prepared before anything is captured.
class DeviceCollectives {
public:
  virtual ~DeviceCollectives() = default;
  /// A collective between the groups of `devices`, which are all members that
  /// this process has of these groups. Addresses in `spec` are those of the
  /// GPUs, in the order of `devices`. InvalidArgument: element type or number
  /// of devices that the kind does not support.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepare(const Mesh &mesh, absl::Span<const int64_t> devices,
          const CollectiveSpec &spec) = 0;
  /// Transfers that take place at the same time, between devices that differ on
  /// `axis` alone. `devices` are those of this process that take part. The
  /// processes of two devices name the transfers between these in one order.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<DeviceCollective>>
  prepareTransfers(const Mesh &mesh, absl::Span<const int64_t> devices,
                   int axis, absl::Span<const DeviceTransfer> transfers) = 0;
  /// Bytes on each device beside its arena, for the prepared collectives.
  virtual uint64_t scratchBytes() const { return 0; }
  /// The error of a communication between devices, if there is one. Does not
  /// wait.
  [[nodiscard]] virtual absl::Status check() { return absl::OkStatus(); }
  /// Ends streams whose collectives cannot end by themselves. Nothing can be
  /// issued any more.
  virtual void abort() {}
};

/// Between the virtual `devices` of one GPU, which share one communication
/// stream: kernels that read and write the arenas of all. Reductions give the
/// bits of those between virtual CPU devices. `deadline` is that of preparing.
[[nodiscard]] absl::StatusOr<std::unique_ptr<DeviceCollectives>>
createVirtualCollectives(const Context &context, int64_t devices,
                         absl::Duration deadline);

/// Between GPUs of this process and others, by NCCL, one device on each. It
/// takes tensors whose parts are contiguous; others go through scratch memory.
/// Sums are in the library's order.
[[nodiscard]] std::unique_ptr<DeviceCollectives>
createNcclCollectives(std::unique_ptr<Communicators> communicators);

/// InvalidArgument: booleans cannot be summed.
[[nodiscard]] absl::Status checkReduction(const CollectiveSpec &spec,
                                          const CollectiveTensor &tensor);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVES_H
