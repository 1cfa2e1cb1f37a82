//===- CompileOptions.h - What a user may choose ----------------*- C++ -*-===//
//
// The options of a compilation and their checks, in terms of the standard
// library alone. Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_COMPILEOPTIONS_H
#define SHARDC_PIPELINES_COMPILEOPTIONS_H

#include <cstdint>
#include <string>

namespace shardc {

/// What a user may choose about a compilation. Those that are flags, the same
/// in shardc-opt, shardc-compile and shardc-run (on a .mlir), have a row in
/// OptionTable.cpp besides; programs alone choose the others.
struct CompileOptions {
  /// Replaces the sizes of the module's mesh: "data=4,model=2"; empty keeps it.
  std::string mesh;
  /// Replaces rules for logical axes: "batch=data,hidden=model,embed=".
  std::string rules;
  /// What to generate code for; "cpu" is x86-64-v3, and
  /// x86-64-v4 beside it.
  std::string target = "cpu";
  /// What a model of f32 computes in, with parameters and the loss in f32:
  /// "f32" or "bf16"; empty: the types that the model has.
  std::string dtype;
  /// Replaces the optimizer, with its hyper-parameters: "adam,b1=0.95"; empty
  /// keeps the module's.
  std::string optimizer;
  /// Replaces the learning rate; 0 keeps it.
  double learningRate = 0;
  /// Replaces the learning-rate schedule:
  /// "cosine,warmup_steps=100,decay_steps=1000"; empty keeps it.
  std::string schedule;
  /// Replaces the largest global norm of the gradients; 0 keeps it, infinity
  /// stands for no clipping.
  double clipNorm = 0;
  /// What factors of large products of f32 may be rounded to: "highest", not at
  /// all, "tf32" or "bf16".
  std::string matmulPrecision = "highest";
  /// NVIDIA's assembler, which adds machine code to plans for GPUs; empty: they
  /// have PTX alone, which the driver compiles.
  std::string ptxas;
  /// Whether code that it does not assemble is an error; otherwise a warning,
  /// and the plan has PTX alone.
  bool needsCubin = true;
  /// What times are estimated for: a built-in name or a JSON file
  /// (docs/Machines.md).
  std::string machine = "cpu";
  /// The directory that receives one numbered .mlir per phase; empty: none.
  std::string dumpDir;
  /// Global batch size; 0 keeps the module's.
  int64_t batchSize = 0;
  /// How everything that is not annotated is sharded: "follow" the annotations,
  /// or "cheapest", by exact search.
  std::string partition = "follow";
  /// What "cheapest" minimises: the "time" of a step, as estimated for
  /// `machine`, or the "bytes" that a device sends.
  std::string objective = "time";
  /// Most bytes that the plan may need on a device; 0: no limit. "cheapest"
  /// takes a plan that costs more if the cheapest one does not fit.
  int64_t deviceMemory = 0;
  /// Gathers weights again for the backward pass instead of holding them from
  /// one pass to the other.
  bool regather = false;
  /// Parts in which a step takes the batch; 0 keeps the module's number.
  int64_t microbatches = 0;
  /// Most bytes that one collective is made to move by putting several into it,
  /// as the communication report counts them; 0: no limit. The default takes
  /// long enough on any link that latency does not matter beside it.
  int64_t bucketBytes = int64_t(64) << 20;
  /// Compiles changes of annotations as well, to say in the plan's explanation
  /// what would remove each collective.
  bool findRemedies = false;
  /// Ends with a remark on what a step sends and what the cheapest plan would.
  bool compareCheapest = false;
  /// The part of the least time that the cheapest plan may cost more, from 0 to
  /// less than 1; a millionth counts as 0.
  double gap = 1e-4;
  /// Does not search programs with more ways to shard single ops for the
  /// cheapest plan, but fails, nor more combinations of them; 0: the defaults.
  int64_t maxAssignments = 0;
  /// Ways to shard single ops at which the branches of the search for the least
  /// time may look together, before the best plan so far is taken; 0: the
  /// default.
  int64_t maxBranchOptions = 0;
  /// Does not check contracts (`shardc.expect`).
  bool ignoreExpectations = false;
  /// Sets every mesh axis and the number of microbatches to 1: the
  /// unpartitioned program.
  bool singleDevice = false;
  /// Verifies the IR after every pass: a fault is found where it is made.
  /// Otherwise it is verified after every phase.
  bool verifyEach = false;
  /// Checks the partition against the global program in a reference
  /// interpreter (docs/Verification.md). What was checked becomes a remark, a
  /// divergence an error with exit code Internal.
  bool verifyPartition = false;
};

/// What is wrong with the options themselves: a mesh that cannot be read, an
/// unknown target, machine, partition or objective, a negative number. Empty if
/// all is well; a compilation with such options ends with ExitCode::Usage.
std::string checkOptions(const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINES_COMPILEOPTIONS_H
