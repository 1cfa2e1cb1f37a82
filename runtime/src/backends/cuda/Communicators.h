//===- Communicators.h - NCCL between the devices of a mesh -----*- C++ -*-===//
//
// One communicator for all devices, and one for each list of axes with a
// collective, split off from it. The devices of this process are one or more
// GPUs; the others are in other processes, which make the same calls in the
// same order. Every wait has a deadline and checks that the others are still
// there.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_COMMUNICATORS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_COMMUNICATORS_H

#include "backends/cuda/Context.h"
#include "backends/cuda/Nccl.h"
#include "base/Mesh.h"
#include "shardc-rt/Store.h"

#include "absl/functional/function_ref.h"

#include <map>
#include <vector>

namespace shardc::rt::cuda {

/// A device of the mesh that this process holds.
struct LocalDevice {
  int64_t number;
  const Context *context;
};

/// Communicators of the devices of this process, in their order.
using CommunicatorList = std::vector<ncclComm_t>;

class Communicators {
public:
  /// Joins all devices of `mesh`. `store` is null if all are of this process;
  /// otherwise it outlives the result. DeadlineExceeded, Aborted: not all came.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Communicators>>
  create(const Nccl &api, const Mesh &mesh, std::vector<LocalDevice> devices,
         Store *store, absl::Duration deadline);
  /// Destroys the communicators, which must be idle.
  ~Communicators();
  Communicators(const Communicators &) = delete;
  Communicators &operator=(const Communicators &) = delete;

  const Nccl &api() const { return *nccl; }
  const std::vector<LocalDevice> &devices() const { return local; }

  /// Those between devices that differ on `axes` only; the rank of a device in
  /// its group is its index over the axes. Valid as long as this object.
  [[nodiscard]] absl::StatusOr<const CommunicatorList *>
  over(absl::Span<const int> axes);

  /// Runs `calls` on `communicators` as one group, and waits until the library
  /// has taken them. `what` names it in errors.
  [[nodiscard]] absl::Status
  inGroup(const CommunicatorList &communicators, absl::string_view what,
          absl::FunctionRef<absl::Status()> calls) const;

  /// A failure since, here or elsewhere: the library's message, and the rank
  /// that the store names.
  [[nodiscard]] absl::Status check() const;

  /// Aborts the running collectives; nothing can be called any more.
  void abort();

private:
  Communicators(const Nccl &api, const Mesh &mesh,
                std::vector<LocalDevice> devices, Store *store,
                absl::Duration deadline)
      : nccl(&api), mesh(mesh), local(std::move(devices)), store(store),
        deadline(deadline), world(local.size()) {}

  absl::StatusOr<ncclUniqueId> agreeOnId() const;
  absl::Status join();
  absl::Status split(absl::Span<const int> axes, CommunicatorList &parts);
  absl::Status waitFor(const CommunicatorList &communicators,
                       absl::string_view what, absl::Duration patience) const;
  absl::Status checkCommunicators() const;
  /// All communicators, those split off first.
  CommunicatorList all() const;
  std::string nameOf(absl::Span<const int> axes) const;

  const Nccl *nccl;
  const Mesh &mesh;
  const std::vector<LocalDevice> local;
  Store *store;
  const absl::Duration deadline;
  CommunicatorList world;
  std::map<std::vector<int>, CommunicatorList> parts;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_COMMUNICATORS_H
