//===- PageData.h - What the views of the page read -------------*- C++ -*-===//
//
// Access to the JSON of the reports, and its numbers as text.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_HTML_PAGEDATA_H
#define SHARDC_LIB_REPORT_HTML_PAGEDATA_H

#include "Markup.h"

#include "shardc/Report/Html/HtmlReport.h"
#include "shardc/Sharding/Layout.h"

#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace shardc {

/// A field, or 0, "" or nothing if `object` has none of the name and type.
int64_t getInteger(const llvm::json::Object &object, llvm::StringRef name);
double getNumber(const llvm::json::Object &object, llvm::StringRef name);
std::string getString(const llvm::json::Object &object, llvm::StringRef name);
const llvm::json::Array &getArray(const llvm::json::Object &object,
                                  llvm::StringRef name);
/// The members of an array of objects.
std::vector<const llvm::json::Object *>
getObjects(const llvm::json::Object &object, llvm::StringRef name);
std::vector<int64_t> getIntegers(const llvm::json::Object &object,
                                 llvm::StringRef name);

/// The mesh of the report, its axes in the order of the devices' numbers.
MeshAxes getMeshAxes(const llvm::json::Object &report);
/// "data=4, model=2".
std::string getMeshText(const MeshAxes &mesh);

/// "1.5 MiB".
std::string getBytesText(double bytes);
/// "12.3 us", "4.57 ms", "1.2 s".
std::string getTimeText(double microseconds);
/// "[16, 8]".
std::string getSizesText(llvm::ArrayRef<int64_t> shape);

/// Adds a number: its text for people, and its value as the JSON has it in the
/// attribute `value` of a `data` element and on hover.
void addBytes(Markup &markup, int64_t bytes);
void addMicroseconds(Markup &markup, double microseconds);
void addCount(Markup &markup, int64_t count);

/// Begins a table with a caption and columns; those in `numbers` are aligned to
/// the right.
void openTable(Markup &markup, llvm::StringRef caption,
               llvm::ArrayRef<llvm::StringRef> columns,
               llvm::ArrayRef<unsigned> numbers = {});
void closeTable(Markup &markup);

/// The class of a colour and its meaning.
using LegendEntry = std::pair<llvm::StringRef, llvm::StringRef>;
void addLegend(Markup &markup, llvm::ArrayRef<LegendEntry> entries);

/// Begins a section with its heading; `id` is the target of links.
void openSection(Markup &markup, llvm::StringRef id, llvm::StringRef heading);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_HTML_PAGEDATA_H
