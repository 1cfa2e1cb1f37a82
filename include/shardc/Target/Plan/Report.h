//===- Report.h - Reports of a plan -----------------------------*- C++ -*-===//
//
// Reports are read from the plan's bytes, so they describe the very program
// that the runtime executes. Pure functions: thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_PLAN_REPORT_H
#define SHARDC_TARGET_PLAN_REPORT_H

#include "shardc/Report/Explanation.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

/// Which reports to print.
struct ReportKinds {
  bool communication = false;
  bool memory = false;
  bool shardings = false;
  bool explanation = false;
  /// The order of a pipeline's tasks. In JSON it is always there.
  bool pipeline = false;
};

/// Fails if `bytes` are not a plan, or a damaged one.
llvm::Error checkPlan(llvm::StringRef bytes);

/// The explanation that the plan in `bytes` holds. Fails if the bytes are not a
/// plan, or one without an explanation.
llvm::Expected<Explanation> readExplanation(llvm::StringRef bytes);

/// Prints reports of the plan in `bytes` for people. Fails if the bytes are not
/// a plan, or the tasks of its pipeline no schedule.
llvm::Error printReports(llvm::StringRef bytes, ReportKinds kinds,
                         llvm::raw_ostream &os);

/// Everything that the reports say as one JSON object; `kinds` chooses
/// among `collectives`, `memory`, `shardings` and `explanation`, the totals
/// are always there, and so are `options`, the compile options that were given,
/// if there are any. Fails as `printReports` does.
llvm::Expected<llvm::json::Object> getJsonReports(llvm::StringRef bytes,
                                                  ReportKinds kinds,
                                                  llvm::json::Object options);

/// Prints this object.
llvm::Error printJsonReports(llvm::StringRef bytes, ReportKinds kinds,
                             llvm::json::Object options, llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_TARGET_PLAN_REPORT_H
