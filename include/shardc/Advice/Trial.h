//===- Trial.h - A candidate on a model -------------------------*- C++ -*-===//
//
// Annotates a copy of a model as a candidate says, bounds its cost from below,
// and compiles and prices it. Trials with a context of their own may run at the
// same time.
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
  /// Whether the step was compiled; otherwise `seconds` and `peakBytes` are
  /// lower bounds, and nothing else is known.
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
  /// In which the inputs of a step come from the host, beside the rest.
  double inputSeconds = 0;
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

/// The module of a model, of which trials are copies. Not thread-safe, and
/// neither are its trials at the same time.
class ParsedModel {
public:
  static llvm::Expected<ParsedModel> parse(const ModelToShard &model);

private:
  friend class Trial;
  ParsedModel() = default;

  /// First, since the module lives in it.
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A copy of a model, annotated as a candidate says.
class Trial {
public:
  /// Fails if the annotations that stay do not suit the candidate. In a context
  /// of its own.
  static llvm::Expected<Trial> make(const ModelToShard &model,
                                    const Candidate &candidate);
  /// In the context of `parsed`, the module of `model`: faster, and for trials
  /// that are not compiled, since a context keeps what was made in it.
  static llvm::Expected<Trial> make(const ModelToShard &model,
                                    const Candidate &candidate,
                                    const ParsedModel &parsed);

  /// The machine as a device of the candidate's mesh sees it.
  const Machine &getMachine() const { return machine; }
  /// `stages`: those of the layers of a pipeline, or empty.
  LowerBound getLowerBound(const ModelFacts &facts,
                           llvm::ArrayRef<int64_t> stages = {}) const;
  /// Cuts a pipeline into stages, and returns those of the layers; empty if
  /// that fails. Call it once, in place of `price`.
  std::vector<int64_t> assignStages();
  /// Takes the copy through the phases up to `memory`. Without `compares` the
  /// plan that a search finds is not compared with the one that follows the
  /// annotations. Call it once.
  llvm::Expected<Price> price(bool compares = true);
  /// Takes the copy, without a pipeline, up to `collectives`, where plans with
  /// and without recomputation part. A plan that a search finds is not
  /// compared. Call it once, in place of `price`.
  llvm::Error prepare();
  /// After `prepare`: the bytes of parameters, states and the batch on a
  /// device.
  int64_t getArgumentBytes() const;
  /// After `prepare`, as often as wanted: the price with the policy `policy` of
  /// recomputation in place of the candidate's.
  llvm::Expected<Price> priceRecomputing(llvm::StringRef policy) const;
  /// The price of a pipeline's step without the other programs of a plan, whose
  /// memory does not count then. All are left at the phase `kernels`, where the
  /// step is still short, if its tasks alone take longer than `limit` seconds.
  /// Call it once, in place of `price`.
  llvm::Expected<Price> priceStep(double limit);
  /// After `priceStep` that was not left: the price of the plan with all its
  /// programs, of which the others are compiled now. Call it once.
  llvm::Expected<Price> priceAll();
  /// The text of the annotated module, before `price`: that of `model` with
  /// edits, or, where these are not possible, printed anew; then `why` says so.
  std::string print(const ModelToShard &model, std::string &why) const;

private:
  Trial() = default;

  static llvm::Expected<Trial> make(const ModelToShard &model,
                                    const Candidate &candidate,
                                    mlir::OwningOpRef<mlir::ModuleOp> module,
                                    std::shared_ptr<mlir::MLIRContext> context);
  /// The price of `plan`, a module after `memory`.
  llvm::Expected<Price> getPrice(mlir::ModuleOp plan) const;

  Candidate candidate;
  CompileOptions options;
  StageCutCache *stageCuts = nullptr;
  /// Whether no annotation of the model stays.
  bool isFree = true;
  Machine machine;
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Of a pipeline, after `priceStep`: the step, which `module` lacks then, and
  /// its price.
  mlir::OwningOpRef<mlir::ModuleOp> step;
  Price stepPrice;
};

} // namespace shardc

#endif // SHARDC_ADVICE_TRIAL_H
