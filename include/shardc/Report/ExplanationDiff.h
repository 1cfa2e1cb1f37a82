//===- ExplanationDiff.h - Differences of two plans -------------*- C++ -*-===//
//
// Compares explanations tensor by tensor: what moves in one alone, and what
// sends more in one than in the other. Tensors are matched by program, name,
// and the kind and axes of the collectives that move them; lines of the source
// may have shifted between the two. Values; thread-safe to read.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_EXPLANATIONDIFF_H
#define SHARDC_REPORT_EXPLANATIONDIFF_H

#include "shardc/Report/Explanation.h"

namespace shardc {

/// A tensor in one of the two plans.
struct DiffSide {
  int64_t wireBytes = 0;
  /// The line to look at first.
  std::string source;
  /// Both ends of the chain in a sentence.
  std::string cause;
};

/// A tensor that one kind of collective moves differently over some axes.
struct DiffEntry {
  std::string tensor, kind;
  std::vector<std::string> axes;
  /// Absent where it does not move so.
  std::optional<DiffSide> here, other;
};

struct ProgramDiff {
  std::string name;
  ProgramCost here, other;
  /// In the order of this plan's program, then of the other's.
  std::vector<DiffEntry> entries;
};

struct ExplanationDiff {
  /// The meshes.
  std::string here, other;
  std::vector<ProgramDiff> programs;
};

/// The differences between two explanations.
ExplanationDiff compare(const Explanation &here, const Explanation &other);

/// For people; `otherName` says what the other plan was read from.
void print(const ExplanationDiff &diff, llvm::StringRef otherName,
           llvm::raw_ostream &os);

llvm::json::Value toJSON(const ExplanationDiff &diff);

} // namespace shardc

#endif // SHARDC_REPORT_EXPLANATIONDIFF_H
