//===- Markup.h - HTML and SVG, element by element --------------*- C++ -*-===//
//
// A writer of well-formed markup: every text and every attribute is escaped,
// every element that is opened is closed. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_REPORT_HTML_MARKUP_H
#define SHARDC_LIB_REPORT_HTML_MARKUP_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <initializer_list>
#include <string>
#include <utility>

namespace shardc {

/// `text` for the content of an element or the value of an attribute, in HTML
/// and in XML. Control characters and bytes that are no UTF-8 become U+FFFD.
std::string escapeMarkup(llvm::StringRef text);

/// JSON for the content of a script element: no character that ends one, or
/// that JavaScript takes for the end of a line.
std::string escapeScriptData(llvm::StringRef json);

/// The first `columns` characters of `text`, with an ellipsis if there are
/// more.
std::string shorten(llvm::StringRef text, size_t columns);

/// Writes markup to a stream that outlives it.
class Markup {
public:
  using Attributes =
      std::initializer_list<std::pair<llvm::StringRef, std::string>>;

  explicit Markup(llvm::raw_ostream &os) : os(os) {}

  Markup &open(llvm::StringRef tag, Attributes attributes = {});
  /// Closes the element that was opened last.
  Markup &close();
  Markup &text(llvm::StringRef text);
  /// An element with this text alone.
  Markup &element(llvm::StringRef tag, Attributes attributes,
                  llvm::StringRef text);
  /// An element without content.
  Markup &empty(llvm::StringRef tag, Attributes attributes = {});
  /// Markup that is written as it is: it must be well-formed.
  Markup &raw(llvm::StringRef markup);

private:
  void begin(llvm::StringRef tag, Attributes attributes, bool isEmpty);

  llvm::raw_ostream &os;
  llvm::SmallVector<std::string> opened;
};

/// Begins a picture of `width` times `height` units, which scales with the
/// page. `label` is its text alternative.
void openSvg(Markup &markup, double width, double height, llvm::StringRef label,
             llvm::StringRef id = "");
/// A rectangle; `title`, if there is one, is shown on hover.
void addRectangle(Markup &markup, double x, double y, double width,
                  double height, llvm::StringRef classes,
                  llvm::StringRef title = "");
/// Text whose anchor ("start", "middle" or "end") is at `x`, on the line `y`.
void addText(Markup &markup, double x, double y, llvm::StringRef anchor,
             llvm::StringRef text, llvm::StringRef classes = "");
void addLine(Markup &markup, double x1, double y1, double x2, double y2,
             llvm::StringRef classes);
/// A coordinate with one digit behind the point.
std::string getCoordinate(double value);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_HTML_MARKUP_H
