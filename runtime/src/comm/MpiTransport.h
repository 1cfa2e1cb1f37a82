//===- MpiTransport.h - Messages through the plugin of MPI ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_COMM_MPITRANSPORT_H
#define SHARDC_RT_SRC_COMM_MPITRANSPORT_H

#include "comm/MpiPlugin.h"
#include "comm/Transport.h"
#include "shardc-rt/Store.h"

#include <memory>

namespace shardc::rt {

class MpiTransport : public Transport {
public:
  /// Opens the plugin and starts MPI. Unavailable: the plugin is missing, with
  /// the reason, or of another version. Internal: an error of MPI.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MpiTransport>>
  open(const std::string &path, absl::Duration deadline);

  /// The store that knows of processes that have failed or gone; without it
  /// they show by the deadline alone. Borrowed.
  void watch(Store *watched) { store = watched; }

  bool isOnOneHost() const override { return mpi.isOnOneHost(); }

  /// When all processes have ended their exchanges; the last call.
  [[nodiscard]] absl::Status finalize();

private:
  MpiTransport(const ShardcMpiFunctions &mpi, int rank, int size,
               absl::Duration deadline)
      : Transport(rank, size), mpi(mpi), deadline(deadline) {}

  absl::Status check(int code, absl::string_view what) const;
  absl::Status wait(Exchange exchange);
  absl::StatusOr<Exchange> begin(absl::Span<const Message> messages,
                                 uint32_t channel) override;
  absl::Status end(Exchange exchange) override;
  void advance() override;

  const ShardcMpiFunctions &mpi;
  const absl::Duration deadline;
  Store *store = nullptr;
  std::vector<ShardcMpiMessage> posted;
  absl::Status failure; ///< The first one.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COMM_MPITRANSPORT_H
