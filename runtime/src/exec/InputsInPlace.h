//===- InputsInPlace.h - Inputs that need no copy ---------------*- C++ -*-===//
//
// What a program gets are global arrays. Where each device's shard of one is a
// block of its rows, kernels and GEMMs read them in the array, and nothing is
// copied into the arena:
//
//   h = x w;   d = xᵀ g      x is what the caller has passed to this run
//
// A program is prepared once and gets other arrays in each run. So it is
// prepared with addresses in memory that stands for the array, and each run
// replaces those that steps have.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_INPUTSINPLACE_H
#define SHARDC_RT_SRC_EXEC_INPUTSINPLACE_H

#include "exec/ProgramBuffers.h"

namespace shardc::rt {

/// Finds the inputs and labels that a program without a pipeline reads in
/// place, adds them to `prepared`, and tells `buffers` where they are. Each of
/// them
///
///  - has shards that are blocks of whole rows, without padding;
///  - is read by kernels, GEMMs and copies alone, and nothing writes to it.
void placeInputs(ProgramBuffers &buffers, PreparedSteps &prepared);

/// Notes where the steps of `prepared`, which are complete, have addresses of
/// such inputs.
void findInputAddresses(PreparedSteps &prepared);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_INPUTSINPLACE_H
