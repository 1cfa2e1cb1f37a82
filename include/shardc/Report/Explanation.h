//===- Explanation.h - Why a program communicates ---------------*- C++ -*-===//
//
// What every collective of a program moves, the chain of values and annotations
// that made it necessary, what it costs, and which change of an annotation
// would remove it. Plain data that Explain.h reads from the IR, that plans keep
// as JSON, and that is printed for people. docs/Explain.md says how to read it
// and documents the JSON. Values; thread-safe to read.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_EXPLANATION_H
#define SHARDC_REPORT_EXPLANATION_H

#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <vector>

namespace shardc {

/// Something that the user wrote. `source` is "file:line:column", or empty.
struct SourceOp {
  std::string op;
  std::string source;
};

/// Where an axis came from.
struct AxisOrigin {
  std::string axis;
  /// The annotated argument, "constraint at file:line", or empty: no annotation
  /// but a search put the axis there.
  std::string name;
  /// Of the annotation.
  std::string source;
  /// Ops between the annotation and the end of the move, nearest last; at most
  /// four.
  std::vector<SourceOp> through;
};

/// What made a tensor that moves, or what wanted it.
struct ChainEnd {
  /// "linear", "update"; "parameter", "state", "input", "label" for an
  /// argument; "rest" where a result rests.
  std::string op;
  /// "forward", ...; empty for arguments and results.
  std::string part;
  std::string source;
  /// The function's arguments among the operands of the op.
  std::vector<std::string> arguments;
  std::vector<AxisOrigin> origins;
};

/// What a program costs one device in one run.
struct ProgramCost {
  int64_t wireBytes = 0;
  int64_t matmulFlops = 0;
  /// Parameters and optimizer states at rest.
  int64_t stateBytes = 0;
  /// Estimated, without overlap, on the machine of the explanation.
  double seconds = 0;
  /// Of a change: the search for the cheapest plan was cut short, and a longer
  /// one may find a plan that costs less.
  bool mayBeLess = false;
};

/// Whether `lhs` takes less time, by more than reports round away.
bool isFaster(const ProgramCost &lhs, const ProgramCost &rhs);

/// Whether a change that takes a program from `before` to `after` is worth it:
/// it is faster, or sends fewer bytes, by a larger part of them than it is
/// slower.
bool pays(const ProgramCost &before, const ProgramCost &after);

/// A change of one annotation.
struct AnnotationEdit {
  std::string source;
  /// The annotated argument, or "constraint at file:line".
  std::string name;
  /// `shardc.sharding = <@mesh, [{}, {}]>`.
  std::string text;
};

/// Changes that remove a move, as compiled, and save time or bytes.
struct Remedy {
  std::vector<AnnotationEdit> edits;
  /// Of the whole program with the changes.
  ProgramCost cost;
};

/// One tensor of a collective.
struct MovedTensor {
  std::string name;
  /// Of the whole move: collectives of a program that are steps of one share
  /// it.
  int64_t move = 0;
  /// Global.
  std::vector<int64_t> shape;
  std::string dtype;
  /// Layouts of the whole move, of which the collective may be one step.
  std::string from, to;
  /// Its share of the collective's.
  int64_t wireBytes = 0;
  ChainEnd producer, consumer;
  /// Removes the tensor from the collective, if one was found.
  std::optional<Remedy> remedy;
};

struct ExplainedCollective {
  std::string kind;
  std::vector<std::string> axes;
  int64_t groupSize = 0;
  /// As in the communication report.
  int64_t bytes = 0, wireBytes = 0;
  /// How many microbatches run it; 1 outside of loops.
  int64_t runs = 1;
  /// Estimated, of all runs.
  double seconds = 0;
  std::string part, cause;
  /// The forward pass has gathered the same, and does not hold it (--regather).
  bool isGatheredAgain = false;
  /// Largest first. Empty where the IR does not say.
  std::vector<MovedTensor> tensors;
  /// The line to look at first: of the change that removes the collective if
  /// there is one, else of the annotation where the chain starts.
  std::string guilty;
  /// Removes the whole collective, if one was found.
  std::optional<Remedy> remedy;
  /// Where there is no remedy: what the program costs with the fastest of the
  /// changes that remove the collective but do not pay, in this program or in
  /// the step, if there are such.
  std::optional<ProgramCost> costWithout;
  /// How many changes were compiled in search of remedies.
  int64_t numTried = 0;
};

struct ExplainedProgram {
  std::string name;
  ProgramCost cost;
  std::vector<ExplainedCollective> collectives;
};

struct Explanation {
  /// "data=4, model=2".
  std::string mesh;
  /// What times are estimated for (docs/Machines.md).
  std::string machine;
  std::vector<ExplainedProgram> programs;
};

/// "file.mlir:12" of "path/file.mlir:12:3", for the inside of sentences.
std::string getShortSource(llvm::StringRef source);

/// The sentences of a chain, one per line: what made the tensor, what wanted it
/// and where the axes came from.
std::vector<std::string> getChainLines(const MovedTensor &tensor);

/// The line to look at first for one tensor: of the change that removes it if
/// there is one, else of the annotation where its chain starts.
std::string getGuiltySource(const MovedTensor &tensor);

/// The lines under the first of the paragraph on `collective`, one of those of
/// `program`: what it moves, why, and what would remove it.
std::vector<std::string>
getParagraphLines(const ExplainedCollective &collective,
                  const ExplainedProgram &program);

/// The same as one text that begins with what the collective sends. Of an empty
/// `program` it says nothing.
std::string getNoteText(const ExplainedCollective &collective,
                        const ExplainedProgram &program);

/// For people: one paragraph per collective, the guilty line first.
void print(const Explanation &explanation, llvm::raw_ostream &os);

llvm::json::Value toJSON(const Explanation &explanation);
bool fromJSON(const llvm::json::Value &value, Explanation &explanation,
              llvm::json::Path path);

} // namespace shardc

#endif // SHARDC_REPORT_EXPLANATION_H
