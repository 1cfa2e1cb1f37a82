//===- ProgramBuffers.h - Where a program's buffers are ---------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_PROGRAMBUFFERS_H
#define SHARDC_RT_SRC_EXEC_PROGRAMBUFFERS_H

#include "exec/MessagePlaces.h"
#include "exec/PreparedSteps.h"

namespace shardc::rt {

/// The buffers of a program on the devices of all ranks: what steps are bound
/// to. Not thread-safe.
class ProgramBuffers {
public:
  /// Of program `number` of each rank's plan; borrows `ranks`.
  ProgramBuffers(absl::Span<const DeviceSet> ranks, size_t number)
      : ranks(ranks), number(number) {}

  /// Of the rank whose command is being prepared.
  const DeviceSet &devices() const { return ranks[rank]; }
  const ProgramSpec &program() const { return programOf(rank); }
  const ProgramSpec &programOf(int rank) const {
    return ranks[rank].plan.programs[number];
  }

  char *address(int64_t device, uint32_t buffer, int64_t run = 0) const {
    return addressOn(rank, device, buffer, run);
  }
  char *addressOn(int rank, int64_t device, uint32_t buffer,
                  int64_t run = 0) const;

  /// Adds a call on `buffers` for every device that computes a copy of the
  /// results among `operands`.
  void bind(Step &step, const std::vector<Operand> &operands,
            const std::vector<uint32_t> &buffers) const;
  void setStrides(Step &step, const std::vector<uint32_t> &buffers) const;

  const absl::Span<const DeviceSet> ranks;
  const size_t number;
  /// Of the command that is being prepared.
  int rank = 0;
  /// With a pipeline.
  std::optional<MessagePlaces> messagePlaces;

  /// Without a pipeline: buffers that are not in their own place of the arena,
  /// and by device where they are.
  std::map<uint32_t, std::vector<char *>> places;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_PROGRAMBUFFERS_H
