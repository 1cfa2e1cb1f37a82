//===- ExplanationDiff.h - Differences between two plans --------*- C++ -*-===//
//
// Compares explanations tensor by tensor: tensors that only one plan moves, and
// tensors for which one plan sends more. Tensors are matched by program, name,
// and the kind and axes of the collectives that move them, since lines of the
// source may have shifted. Values; thread-safe to read.
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
  /// Absent if that plan does not move it so.
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

/// For people; `otherName` is the source of the other plan.
void print(const ExplanationDiff &diff, llvm::StringRef otherName,
           llvm::raw_ostream &os);

llvm::json::Value toJSON(const ExplanationDiff &diff);

} // namespace shardc

#endif // SHARDC_REPORT_EXPLANATIONDIFF_H
