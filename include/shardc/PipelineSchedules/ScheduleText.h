//===- ScheduleText.h - Schedules of pipelines as text ----------*- C++ -*-===//
//
// The notation of PyTorch's pipelining, compute tasks only: a line for each
// rank, tasks between commas, such as "0F0,0F1,0B0,0B1". Empty cells are
// allowed and mean nothing. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_SCHEDULETEXT_H
#define SHARDC_PIPELINESCHEDULES_SCHEDULETEXT_H

#include "shardc/PipelineSchedules/PipelineSchedule.h"

namespace shardc {

/// Reads one task, such as "0F1"; false if `text` is none.
bool readPipelineTask(llvm::StringRef text, PipelineTask &task);

/// Reads a schedule of `microbatches` on `ranks` with `chunks` stages each, and
/// checks it (`checkPipelineSchedule`). Errors begin with the place,
/// "FILE:LINE:COLUMN: ", or "FILE: " where the whole text is meant; `file` is
/// the name for that. They are printable.
llvm::Expected<PipelineSchedule>
readPipelineSchedule(llvm::StringRef text, llvm::StringRef file, int64_t ranks,
                     int64_t chunks, int64_t microbatches);

/// Whether `schedule`, as `#shardc.pipeline` has it, is the text of a schedule
/// and not a name: it has lines.
bool isScheduleText(llvm::StringRef schedule);

/// The schedule that `schedule` names (`makePipelineSchedule`) or, if it is a
/// text, is (`readPipelineSchedule`).
llvm::Expected<PipelineSchedule>
getPipelineSchedule(llvm::StringRef schedule, llvm::StringRef file,
                    int64_t ranks, int64_t chunks, int64_t microbatches);

/// The text of `schedule`, which `readPipelineSchedule` reads back.
std::string printPipelineSchedule(const PipelineSchedule &schedule);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_SCHEDULETEXT_H
