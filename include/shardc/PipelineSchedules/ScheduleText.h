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

/// Reads a schedule for `ranks` ranks, `stages` stages and `microbatches`
/// microbatches, and checks it (`checkPipelineSchedule`). Errors begin with the
/// place, "LINE:COLUMN: ", where there is one.
llvm::Expected<PipelineSchedule> readPipelineSchedule(llvm::StringRef text,
                                                      int64_t ranks,
                                                      int64_t stages,
                                                      int64_t microbatches);

/// The text of `schedule`, which `readPipelineSchedule` reads back.
std::string printPipelineSchedule(const PipelineSchedule &schedule);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_SCHEDULETEXT_H
