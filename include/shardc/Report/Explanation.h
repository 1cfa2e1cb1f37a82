//===- Explanation.h - The causes of a program's collectives ----*- C++ -*-===//
//
// For every collective of a program: the tensors that it moves, the chain of
// values and annotations that made it necessary, its cost, and fix-its, changes
// of annotations that remove it. Plain data: read from the IR by Explain.h,
// kept as JSON in plans, printed for people. docs/Explain.md says how to read
// it and documents the JSON. Values; thread-safe to read.
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

/// The provenance of an axis.
struct AxisOrigin {
  std::string axis;
  /// The annotated argument, "constraint at file:line", or empty if a search
  /// put the axis there.
  std::string name;
  /// Of the annotation.
  std::string source;
  /// Ops between the annotation and the end of the move, nearest last; at most
  /// four.
  std::vector<SourceOp> through;
};

/// One end of a move: the producer of the tensor, or its consumer.
struct ChainEnd {
  /// "linear", "update"; "parameter", "state", "input", "label" for an
  /// argument; "rest" for the storage sharding of a result.
  std::string op;
  /// "forward", ...; empty for arguments and results.
  std::string part;
  std::string source;
  /// The function's arguments among the operands of the op.
  std::vector<std::string> arguments;
  std::vector<AxisOrigin> origins;
  /// Of a send: the stage of the pipeline.
  std::optional<int64_t> stage = {};
};

/// The cost of one run of a program on one device.
struct ProgramCost {
  int64_t wireBytes = 0;
  int64_t matmulFlops = 0;
  /// Parameters and optimizer states as stored between steps.
  int64_t stateBytes = 0;
  /// Estimated before kernels are formed, as that of a change on trial, without
  /// overlap, on the machine of the explanation; with a pipeline until the last
  /// rank ends (estimateSeconds, RankPrograms.h).
  double seconds = 0;
  /// In which the inputs come from the host, beside the rest: `seconds` is no
  /// less.
  double inputSeconds = 0;
  /// Of a change: the search for the cheapest plan was cut short, and a
  /// complete one might find a cheaper plan.
  bool mayBeLess = false;
  /// With a pipeline: the bytes that it needs on a device of the rank that
  /// needs most, and those that a device of each rank sends, together.
  std::optional<int64_t> peakBytes = {}, sumOfWireBytes = {};
};

/// Whether `lhs` takes less time, by more than the rounding of reports.
bool isFaster(const ProgramCost &lhs, const ProgramCost &rhs);

/// Whether a change from `before` to `after` pays: it is faster, or it saves a
/// larger share of the bytes than it loses of the time.
bool pays(const ProgramCost &before, const ProgramCost &after);

/// A change of one annotation, or a new one.
struct AnnotationEdit {
  std::string source;
  /// The annotated argument, "constraint at file:line", an op, "linear",
  /// or its "result of linear", behind which a constraint is new.
  std::string name;
  /// `shardc.sharding = <@mesh, [{}, {}]>`, `shardc.stage = 1`.
  std::string text;
};

/// A fix-it: changes that remove a move, or with which a send sends less, and
/// that save time or bytes, compiled on trial. The JSON calls it `remedy`.
struct FixIt {
  std::vector<AnnotationEdit> edits;
  /// Of the whole program with the changes.
  ProgramCost cost;
};

/// One tensor of a collective.
struct MovedTensor {
  std::string name;
  /// Number of the whole move, which several collectives may implement.
  int64_t move = 0;
  /// Global.
  std::vector<int64_t> shape;
  std::string dtype;
  /// Layouts before and after the whole move, of which the collective may be
  /// one step.
  std::string from, to;
  /// Its share of the collective's.
  int64_t wireBytes = 0;
  ChainEnd producer, consumer;
  /// The fix-it that removes the tensor from the collective, if one was found.
  std::optional<FixIt> fixIt;
};

struct ExplainedCollective {
  std::string kind;
  std::vector<std::string> axes;
  int64_t groupSize = 0;
  /// As in the communication report.
  int64_t bytes = 0, wireBytes = 0;
  /// The number of microbatches that run it; 1 outside of loops.
  int64_t runs = 1;
  /// Estimated, of all runs.
  double seconds = 0;
  std::string part, cause;
  /// It repeats an all-gather of the forward pass, whose result is not held
  /// (--regather).
  bool isGatheredAgain = false;
  /// Largest first. Empty if the IR does not tell.
  std::vector<MovedTensor> tensors;
  /// The line to look at first: that of the fix-it if there is one, else of the
  /// annotation where the chain starts; of a send that of the op that makes the
  /// value.
  std::string guilty;
  /// The fix-it that removes the whole collective, if one was found; of a send,
  /// which a pipeline needs, one with which fewer bytes cross.
  std::optional<FixIt> fixIt;
  /// If no fix-it pays, in this program or in the step: the cost of the program
  /// with the fastest change that removes the collective, if any does.
  std::optional<ProgramCost> costWithout;
  /// The number of changes compiled in search of fix-its.
  int64_t numTried = 0;

  /// Whether it carries a value from one stage of a pipeline to another.
  bool isSend() const { return kind == "send"; }
};

struct ExplainedProgram {
  std::string name;
  ProgramCost cost;
  std::vector<ExplainedCollective> collectives;
};

struct Explanation {
  /// "data=4, model=2".
  std::string mesh;
  /// The machine of the time estimates (docs/Machines.md).
  std::string machine;
  std::vector<ExplainedProgram> programs;
};

/// "file.mlir:12" of "path/file.mlir:12:3", for the inside of sentences.
std::string getShortSource(llvm::StringRef source);

/// The sentences of a chain, one per line: the producer, the consumer, and the
/// provenance of the axes.
std::vector<std::string> getChainLines(const MovedTensor &tensor);

/// The line to look at first for one tensor: that of its fix-it if there is
/// one, else of the annotation where its chain starts; of a send that of the op
/// that makes it.
std::string getGuiltySource(const MovedTensor &tensor);

/// The lines under the first of the paragraph on `collective`, one of those of
/// `program`: the tensors, the causes and the fix-its.
std::vector<std::string>
getParagraphLines(const ExplainedCollective &collective,
                  const ExplainedProgram &program);

/// The same as one text, which begins with the bytes that the collective sends.
/// Empty `program`: the text leaves it out.
std::string getNoteText(const ExplainedCollective &collective,
                        const ExplainedProgram &program);

/// For people: one paragraph per collective, the guilty line first.
void print(const Explanation &explanation, llvm::raw_ostream &os);

/// Writes the explanation as JSON on one line.
void writeJSON(const Explanation &explanation, llvm::raw_ostream &os);
bool fromJSON(const llvm::json::Value &value, Explanation &explanation,
              llvm::json::Path path);

} // namespace shardc

#endif // SHARDC_REPORT_EXPLANATION_H
