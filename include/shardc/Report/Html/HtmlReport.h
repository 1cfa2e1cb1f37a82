//===- HtmlReport.h - A report to look at -----------------------*- C++ -*-===//
//
// Writes the reports of a plan as one HTML file, or as pictures. Both are drawn
// from what `shardc-compile --json` prints and from the explanation, so that a
// number stands for the same value everywhere. docs/Report.md describes the
// page. Pure functions: thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_HTML_HTMLREPORT_H
#define SHARDC_REPORT_HTML_HTMLREPORT_H

#include "shardc/Report/Explanation.h"
#include "shardc/Report/RunTrace.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace shardc {

/// The plan of the same model with another choice.
struct OtherPlan {
  /// The choice: "with --regather".
  std::string name;
  /// As `HtmlReportInput::report`; its `memory` and its peak are shown.
  llvm::json::Object report;
};

/// What a page shows.
struct HtmlReportInput {
  /// What `printJsonReports` prints with every kind of report.
  const llvm::json::Object &report;
  /// Why the programs communicate; null if the plan does not say it.
  const Explanation *explanation = nullptr;
  /// The records of `shardc-run --metrics`, one for each step; null without.
  const llvm::json::Array *metrics = nullptr;
  /// A run of the plan, to be laid over the estimates; null without.
  const RunTrace *trace = nullptr;
  /// Plans whose memory is beside that of the report; without a pipeline.
  llvm::ArrayRef<OtherPlan> others = {};
};

/// Writes the page: one file without references to others, which can be read
/// without a script. Texts of the plan are escaped; bytes that are no UTF-8
/// become replacement characters.
void writeHtmlReport(const HtmlReportInput &input, llvm::raw_ostream &os);

/// A picture that is a file of its own.
struct ReportPicture {
  /// Unique, of the characters A-Z, a-z, 0-9, '.', '_' and '-': "w0.svg".
  std::string fileName;
  std::string svg;
};

/// Pictures of the mesh and of the devices that hold each slice of a tensor:
/// one of each tensor, and one of each move, before and after it.
std::vector<ReportPicture> drawShardings(const HtmlReportInput &input);

} // namespace shardc

#endif // SHARDC_REPORT_HTML_HTMLREPORT_H
