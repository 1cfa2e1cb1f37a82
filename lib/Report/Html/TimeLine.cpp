//===- TimeLine.cpp - Spans over a common time ----------------------------===//

#include "TimeLine.h"

#include "PageData.h"

#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace shardc;

void TimeLane::add(DrawnSpan span) {
  constexpr double leastWidth = 1;
  if (!spans.empty() && spans.back().classes == span.classes &&
      (span.end - spans.back().start) * scale < leastWidth) {
    spans.back().end = span.end;
    spans.back().count += span.count;
  } else {
    spans.push_back(std::move(span));
  }
}

void TimeLane::draw(Markup &markup, double y, double height) const {
  for (const DrawnSpan &span : spans)
    addRectangle(markup, timeLeft + span.start * scale, y,
                 std::max(0.3, (span.end - span.start) * scale), height,
                 span.classes,
                 span.count == 1 ? span.title
                                 : formatv("{0} short spans, the first {1}",
                                           span.count, span.title)
                                       .str());
}

void shardc::addTimeAxis(Markup &markup, double y, double length) {
  for (int mark = 0; mark <= 4; ++mark) {
    double x = timeLeft + timeWidth * mark / 4;
    addLine(markup, x, y, x, y + 5, "mark");
    addText(markup, x, y + 18, mark == 4 ? "end" : "middle",
            getTimeText(length * mark / 4), "label");
  }
}
