//===- MessagePlaces.h - Messages that need no copy -------------*- C++ -*-===//
//
// The ranks of a pipeline on virtual devices share one allocation. A message
// copies a buffer of its sender into one of its receiver. If both can lie in
// one place as long as either is used, there is nothing to copy.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_MESSAGEPLACES_H
#define SHARDC_RT_SRC_EXEC_MESSAGEPLACES_H

#include "exec/ArenaLayout.h"

#include "absl/types/span.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace shardc::rt {

/// Decides for the alias sets of one program of all ranks. The sets of a
/// message's two buffers share a place if
///
///  - the receiver's is not used before the message;
///  - behind the message each is written only when the other is used no more;
///  - neither keeps a value between runs, is a result, or takes part in a
///    collective, and all their buffers cover the same bytes;
///  - both ranks have the same devices in this process;
///  - no other set holds a value in that place in any round (`PipelineOrder`)
///    from the first use of the two to the last.
///
/// Messages take places in their order: first that of the receiver, then that
/// of the sender. Immutable, and so safe to share between threads.
class MessagePlaces {
public:
  /// A buffer of the program of one rank: rank and number.
  using Buffer = std::pair<int, uint32_t>;

  /// `layouts` are by rank.
  MessagePlaces(const PlanSpec &plan,
                absl::Span<const ArenaLayout *const> layouts, size_t program,
                const PipelineOrder &order);

  /// The buffer in whose place `buffer` is; mostly itself. Both have as many
  /// copies.
  Buffer placeOf(Buffer buffer) const;

private:
  /// An alias set of a rank.
  using Set = std::pair<int, uint32_t>;

  /// Rounds, both included.
  struct Life {
    int64_t first, last;

    bool overlaps(Life other) const {
      return first <= other.last && other.first <= last;
    }
    Life with(Life other) const {
      return {std::min(first, other.first), std::max(last, other.last)};
    }
  };
  /// How the program uses a set, and those that share its place.
  struct Use {
    Life life;
    std::vector<int64_t> writes; ///< Rounds.
    /// One of its buffers, of which each has so many bytes.
    Buffer buffer;
    uint64_t bytes;
    /// The bytes of all its copies in the allocation of its rank.
    ByteRange place;
    size_t numBuffers = 1;
    /// Stays where it is.
    bool isFixed = false;
  };
  struct Message {
    Buffer from, to;
    int64_t round;
  };

  const ProgramSpec &programOf(int rank) const {
    return plan.ranks()[rank].programs[program];
  }
  const Command &commandOf(RankCommand place) const {
    return programOf(place.rank).commands[place.command];
  }
  Set setOf(Buffer buffer) const {
    return {buffer.first,
            layouts[buffer.first]->aliasSetOf(program, buffer.second)};
  }
  void addTensors(int rank);
  void addBuffers(int rank);
  void follow(const PipelineOrder &order);
  void follow(const PipelineStep &step, int64_t round);
  bool isFree(Set place, Life life) const;
  void share(const Message &message);
  void move(Set set, Set place);

  const PlanSpec &plan;
  absl::Span<const ArenaLayout *const> layouts;
  size_t program;
  std::map<Set, Use> uses;       ///< Of those in their own place.
  std::map<Set, Buffer> places;  ///< Of the others.
  std::vector<Message> messages; ///< In the order of rounds.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_MESSAGEPLACES_H
