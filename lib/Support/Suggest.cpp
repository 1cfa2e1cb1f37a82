//===- Suggest.cpp - "did you mean" ---------------------------------------===//

#include "shardc/Support/Suggest.h"

#include <algorithm>

/// Levenshtein's distance.
static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string shardc::findNearest(const std::string &name,
                                const std::vector<std::string> &names) {
  constexpr size_t mostEdits = 2;
  size_t best = mostEdits + 1;
  std::string nearest;
  for (const std::string &candidate : names) {
    size_t distance = editDistance(name, candidate);
    // Names that have nothing in common are not near.
    if (distance < best && distance < std::max(name.size(), candidate.size())) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string shardc::suggest(const std::string &name,
                            const std::vector<std::string> &names) {
  std::string nearest = findNearest(name, names);
  if (!nearest.empty())
    return "; did you mean '" + nearest + "'?";
  std::string text = "; expected one of ";
  for (size_t i = 0; i < names.size(); ++i)
    text += (i ? ", " : "") + names[i];
  return text;
}
