//===- CommunicationLines.h - The lines of communication reports *- C++ -*-===//
//
// The tasks of a pipeline have the collectives of one op once for every
// microbatch. Reports have a line for each op. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TARGET_PLAN_COMMUNICATIONLINES_H
#define SHARDC_LIB_TARGET_PLAN_COMMUNICATIONLINES_H

#include "plan_generated.h"

#include <vector>

namespace shardc {

/// The collectives and sends of one op of a program, in all of its runs.
struct CommunicationLine {
  /// The first run, whose kind, axes, sizes, source and cause are those of all.
  const rt::fb::CollectiveReport *first;
  /// The task that it belongs to, of a send the one that makes what is sent;
  /// with the first microbatch that has it. Null outside of tasks.
  const rt::fb::Task *task;
  uint64_t runs = 0;
  /// Of all runs together.
  uint64_t wireBytes = 0;
  double seconds = 0;
};

struct CommunicationLines {
  /// In the order in which they come first.
  std::vector<CommunicationLine> lines;
  /// By entry of `Program.collectives` its line.
  std::vector<size_t> lineOf;
};

/// The lines of `program`.
CommunicationLines getCommunicationLines(const rt::fb::Program &program);

} // namespace shardc

#endif // SHARDC_LIB_TARGET_PLAN_COMMUNICATIONLINES_H
