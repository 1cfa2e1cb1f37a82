//===- Summary.h - What a run ends with -------------------------*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_SUMMARY_H
#define SHARDC_TOOLS_SHARDC_RUN_SUMMARY_H

#include "shardc-rt/Executor.h"
#include "shardc-rt/Trainer.h"

#include <optional>
#include <ostream>

namespace shardc::run {

/// Prints what training and evaluation came to, in lines for people.
void printSummary(const rt::TrainSummary &summary,
                  const std::optional<rt::Evaluation> &evaluation,
                  std::ostream &out);

/// The same and what the plan needs, as one JSON object.
void printJsonSummary(const rt::Executor &executor,
                      const rt::TrainSummary &summary,
                      const std::optional<rt::Evaluation> &evaluation,
                      std::ostream &out);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_SUMMARY_H
