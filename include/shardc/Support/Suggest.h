//===- Suggest.h - "did you mean" -------------------------------*- C++ -*-===//
//
// The nearest of a list of names by edit distance (Levenshtein 1966), for error
// messages, in terms of the standard library alone. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_SUGGEST_H
#define SHARDC_SUPPORT_SUGGEST_H

#include <string>
#include <vector>

namespace shardc {

/// The name of `names` with the smallest edit distance to `name` (the first
/// such one), or "" if none is within two edits.
std::string findNearest(const std::string &name,
                        const std::vector<std::string> &names);

/// "; did you mean 'NEAREST'?" or, where none is near, "; expected one of A,
/// B".
std::string suggest(const std::string &name,
                    const std::vector<std::string> &names);

} // namespace shardc

#endif // SHARDC_SUPPORT_SUGGEST_H
