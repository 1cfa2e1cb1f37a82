//===- BetweenProcesses.h - Collectives of several processes ----*- C++ -*-===//
//
// Groups whose devices are in several processes. Devices of one process read
// each other's operands in place; what another process needs of an operand is
// sent to it, once for all of its devices.
//
// An all-reduce has four rounds. The elements are divided among the processes
// of the group; each gets its part of all operands from the others, reduces it
// in the order of the group's tree (ReductionTree.h), sends it to the others,
// and copies what it gets to all of its results. A device's operand and its
// part of the result cross as often as in a ring. All other kinds have two
// rounds: parts of operands are exchanged, and results made of them. So has a
// small all-reduce, whose time is that of its messages: each process gets all
// operands and reduces them itself. A process that has all operands of a node
// of the tree reduces them before the first round and sends one in their place.
// Since the tree depends on the group alone, the bits are those of one process.
//
// On one host, where operands and results are in memory that the others see
// (Memory.h), those of a large collective are read in place: its messages say
// how far a process has come. One more round ends it, in which each process
// tells the others that it needs nothing more of them.
//
// Small parts for one process travel in one message, those of small collectives
// that start together as well; a large one that is contiguous is sent from its
// place. Worker 0 alone exchanges messages, the other rounds are shared by all
// workers.
//
// Operands travel from `PreparedCollective::start` on: the collective is in
// flight while devices compute and others start and finish. What is left is
// done by the first tasks and those behind.
//
// All processes prepare the same collectives in the same order, and run their
// starts and the rest of them in one order, that of the program. When one is
// prepared they tell each other which devices share operands and results; then
// each process knows all messages. Each collective has a channel, so that its
// messages meet no others. No run waits forever: starts wait for nobody. Take
// the first of all waits, in the order of the program, that not every process
// has passed. Each process has passed or reaches it, since all waits before
// have ended; so it has sent its operands, and the sums follow from these
// alone, and that all has been read from the sums.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_BETWEENPROCESSES_H
#define SHARDC_RT_SRC_COLLECTIVES_BETWEENPROCESSES_H

#include "collectives/Collectives.h"
#include "comm/Transport.h"

namespace shardc::rt {

/// The most bytes of a small collective, of the nodes of a group that all its
/// processes get. To send more twice in parts takes less time than to send all
/// of it once.
constexpr int64_t mostSmallBytes = 32 << 10;

/// Collectives between the devices of all processes of `transport`, which
/// outlives them. Those of at most `mostSmall` bytes are small.
std::unique_ptr<Collectives>
createCollectivesBetweenProcesses(Transport &transport,
                                  int64_t mostSmall = mostSmallBytes);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_BETWEENPROCESSES_H
