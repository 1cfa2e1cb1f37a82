//===- ChromeTrace.h - A trace in Chrome's format ---------------*- C++ -*-===//
//
// The trace event format: "Trace Event Format", the Chromium project, 2016.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_TRACE_CHROMETRACE_H
#define SHARDC_RT_SRC_TRACE_CHROMETRACE_H

#include "trace/Recording.h"

namespace shardc::rt {

/// The process that recorded a trace.
struct TracedProcess {
  int rank = 0;
  std::string name = "shardc";
  int64_t clockOffset = 0; ///< Nanoseconds to add to its times.
};

/// The events of one process, JSON objects with a comma between two.
std::string chromeEvents(const Trace::State &trace,
                         const TracedProcess &process);

/// The JSON object of the events of all processes, which run the plan that
/// `plan` describes, a JSON object.
std::string chromeTrace(const std::vector<std::string> &events,
                        const std::string &plan);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_TRACE_CHROMETRACE_H
