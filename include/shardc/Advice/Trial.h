//===- Trial.h - A candidate on a model -------------------------*- C++ -*-===//
//
// Annotates a copy of a model as a candidate says, bounds its cost from below,
// and compiles and prices it. Each trial has a context of its own: trials of
// one model may run at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ADVICE_TRIAL_H
#define SHARDC_ADVICE_TRIAL_H

#include "shardc/Advice/LowerBound.h"
#include "shardc/PipelineSchedules/StageCut.h"
#include "shardc/Pipelines/CompileOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// A model to shard, and what is given.
struct ModelToShard {
  /// The text of a source module, or of a StableHLO program, and its name.
  std::string text, name;
  /// The options of its compilation; what candidates choose is replaced.
  CompileOptions options;
  /// The arguments, by the names of their roles, whose annotations stay.
  std::set<std::string> fixedArguments;
  /// Borrowed: where trials keep cuts into stages for each other; may be null.
  StageCutCache *stageCuts = nullptr;
};

/// The facts about `model`. Errors in the model are printed to `os` as
/// compilations print them; then there are no facts.
std::optional<ModelFacts> readFacts(const ModelToShard &model,
                                    llvm::raw_ostream &os);

/// What a compiled plan costs.
struct Price {
  /// Whether the step was compiled; otherwise `seconds` is a lower bound, and
  /// nothing else is known.
  bool isCompiled = false;
  /// A step, as reports estimate it: with overlap, or until the last rank of a
  /// pipeline ends.
  double seconds = 0;
  /// Of that, on the rank that works longest: arithmetic and memory traffic,
  /// and collectives as if nothing overlapped.
  double computeSeconds = 0, memorySeconds = 0, communicationSeconds = 0;
  /// The part of the time of a pipeline's tasks in which ranks wait, from 0 to
  /// 1, as `--report=pipeline` has it.
  double bubble = 0;
  /// Seconds in which the rank that works longest waits for others.
  double waitSeconds = 0;
  /// The arena of a device, of the rank that needs most.
  int64_t peakBytes = 0;
  /// The type in which its largest GEMM computes.
  ComputeType computeType = ComputeType::F32;
  /// Floating-point operations of GEMMs of all devices together.
  double matmulFlops = 0;
  /// Bytes that a device sends in a step, by the axes along which it does:
  /// "data", "data+model"; of the rank that sends most.
  std::vector<std::pair<std::string, int64_t>> wireBytes;

  /// The time of collectives during which a device does nothing else.
  double getExposedSeconds(const Machine &machine) const;
  int64_t getWireBytes() const;
};

/// A copy of a model, annotated as a candidate says.
class Trial {
public:
  /// Fails if the annotations that stay do not suit the candidate.
  static llvm::Expected<Trial> make(const ModelToShard &model,
                                    const Candidate &candidate);

  /// The machine as a device of the candidate's mesh sees it.
  const Machine &getMachine() const { return machine; }
  /// `stages`: those of the layers of a pipeline, or empty.
  LowerBound getLowerBound(const ModelFacts &facts,
                           llvm::ArrayRef<int64_t> stages = {}) const;
  /// Cuts a pipeline into stages, and returns those of the layers; empty if
  /// that fails. Call it once, in place of `price`.
  std::vector<int64_t> assignStages();
  /// Takes the copy through the phases up to `memory`. Call it once.
  llvm::Expected<Price> price();
  /// The price of a pipeline's step without the other programs of a plan, whose
  /// memory does not count then. It is left at the phase `kernels`, where the
  /// step is still short, if its tasks alone take longer than `limit` seconds.
  /// Call it once, in place of `price`.
  llvm::Expected<Price> priceStep(double limit);
  /// The text of the annotated module, before `price`: that of `model` with
  /// edits, or, where these are not possible, printed anew; then `why` says so.
  std::string print(const ModelToShard &model, std::string &why) const;

private:
  Trial() = default;

  llvm::Expected<Price> getPrice();

  Candidate candidate;
  CompileOptions options;
  StageCutCache *stageCuts = nullptr;
  /// Whether no annotation of the model stays.
  bool isFree = true;
  Machine machine;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace shardc

#endif // SHARDC_ADVICE_TRIAL_H
