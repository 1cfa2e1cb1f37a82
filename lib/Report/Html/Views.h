//===- Views.h - The sections of the page -----------------------*- C++ -*-===//
//
// One function and one file per section, in the order of the page. A view
// writes a section, and what the script needs of it into `data`.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_HTML_VIEWS_H
#define SHARDC_LIB_REPORT_HTML_VIEWS_H

#include "Markup.h"
#include "PageData.h"
#include "ShardingPicture.h"

#include "shardc/Report/Html/HtmlReport.h"

#include "llvm/Support/JSON.h"

#include <optional>
#include <vector>

namespace shardc {

/// The totals of a step, and its cost beside that of the cheapest plan.
void addOverview(const HtmlReportInput &input, Markup &markup);

/// The mesh, and which device holds which slice of each tensor.
void addShardings(const HtmlReportInput &input, Markup &markup,
                  llvm::json::Object &data);

/// Memory over the step by kind.
void addMemory(const HtmlReportInput &input, Markup &markup,
               llvm::json::Object &data);

/// Every collective with its time, its bytes, its causes and its remedy.
void addCommunication(const HtmlReportInput &input, Markup &markup);

/// The step over time, the tasks of a pipeline, and a roofline of the GEMMs.
void addTime(const HtmlReportInput &input, Markup &markup);

/// The trace of a run beside the estimate, a part of the section on time, whose
/// pictures are `length` microseconds wide.
void addMeasured(const HtmlReportInput &input, double length, Markup &markup);

/// What `--metrics` of a run has, over its steps.
void addRun(const HtmlReportInput &input, Markup &markup);

/// Tensors with the same picture.
struct SharedPicture {
  /// The first tensor of a move has its layout after it in `after`.
  PlacedTensor before;
  std::optional<PlacedTensor> after;
  std::vector<std::string> names;
};

/// The parameters, states, inputs and labels as they are stored.
std::vector<SharedPicture> getStoredTensors(const HtmlReportInput &input,
                                            const MeshAxes &mesh);
/// The tensors that collectives move, before and after the whole move. Those
/// whose layouts cannot be drawn are left out.
std::vector<SharedPicture> getMovedTensors(const HtmlReportInput &input,
                                           const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_HTML_VIEWS_H
