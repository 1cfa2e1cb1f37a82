//===- TimeLine.h - Spans over a common time --------------------*- C++ -*-===//

#ifndef SHARDC_LIB_REPORT_HTML_TIMELINE_H
#define SHARDC_LIB_REPORT_HTML_TIMELINE_H

#include "Markup.h"

#include <string>
#include <vector>

namespace shardc {

/// The left edge and the width of time lines in a picture, and its whole width.
inline constexpr double timeLeft = 110, timeWidth = 850,
                        timePictureWidth = timeLeft + timeWidth + 20;

/// A span, or several short ones one after the other, as one rectangle.
/// Microseconds.
struct DrawnSpan {
  double start, end;
  std::string classes, title;
  int64_t count = 1;
};

/// The spans of one row, in time order.
class TimeLane {
public:
  /// `length` is the time of the whole width.
  explicit TimeLane(double length) : scale(timeWidth / length) {}

  /// Neighbours of the same classes that are narrower than a unit together
  /// become one.
  void add(DrawnSpan span);
  void draw(Markup &markup, double y, double height) const;

private:
  double scale;
  std::vector<DrawnSpan> spans;
};

/// Marks from 0 to `length` below a time line, at `y`.
void addTimeAxis(Markup &markup, double y, double length);

} // namespace shardc

#endif // SHARDC_LIB_REPORT_HTML_TIMELINE_H
