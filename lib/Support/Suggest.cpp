//===- Suggest.cpp - "did you mean" ---------------------------------------===//

#include "shardc/Support/Suggest.h"

#include "llvm/ADT/StringRef.h"

std::string shardc::findNearest(const std::string &name,
                                const std::vector<std::string> &names) {
  constexpr unsigned mostEdits = 2;
  unsigned best = mostEdits + 1;
  std::string nearest;
  for (const std::string &candidate : names) {
    unsigned distance = llvm::StringRef(name).edit_distance(
        candidate, /*AllowReplacements=*/true, best);
    if (distance < best) {
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
