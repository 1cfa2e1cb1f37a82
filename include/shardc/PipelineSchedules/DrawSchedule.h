//===- DrawSchedule.h - Pictures of schedules -------------------*- C++ -*-===//
//
// Draws the tasks of a pipeline over time, as text. A pure function;
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_DRAWSCHEDULE_H
#define SHARDC_PIPELINESCHEDULES_DRAWSCHEDULE_H

#include "shardc/PipelineSchedules/SimulateSchedule.h"

namespace shardc {

/// Draws `simulation`, one of `schedule`: a line for each rank, or for each
/// stage of a rank that has several, and a column for an equal part of the
/// time. A task is its letter and its microbatch, and `-` until it ends; `.` is
/// time in which the rank idles. For example:
///
///   rank 0  F0 F1 ......B0--- ...B1---
///   rank 1  ...F0 B0--- F1 B1--- ......
///
/// A task that is too narrow for its microbatch has its letter alone; one that
/// is narrower than half a column may be missing. The time takes at most
/// `columns` columns, at least 1. Every line ends with a newline.
std::string drawSchedule(const PipelineSchedule &schedule,
                         const PipelineSimulation &simulation,
                         size_t columns = 120);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_DRAWSCHEDULE_H
