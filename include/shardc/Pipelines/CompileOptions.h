//===- CompileOptions.h - The options of a compilation ----------*- C++ -*-===//
//
// The options and their checks, in terms of the standard library alone. Plain
// values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_COMPILEOPTIONS_H
#define SHARDC_PIPELINES_COMPILEOPTIONS_H

#include <cstdint>
#include <string>

namespace shardc {

/// The options of a compilation. Options that are also flags, of shardc-opt,
/// shardc-compile and shardc-run alike, have a row in OptionTable.cpp; the
/// others are set by programs alone.
struct CompileOptions {
  /// Replaces the sizes of the module's mesh: "data=4,model=2"; empty keeps it.
  std::string mesh;
  /// Replaces rules for logical axes: "batch=data,hidden=model,embed=".
  std::string rules;
  /// The target of code generation; "cpu" is x86-64-v3, and x86-64-v4 beside
  /// it, "cpu:x86-64-v3" that one alone.
  std::string target = "cpu";
  /// The element type that a model of f32 computes in, with parameters and the
  /// loss in f32: "f32" or "bf16"; empty keeps the model's types.
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
  /// The precision to which factors of large GEMMs of f32 may be rounded:
  /// "highest" (not at all), "tf32" or "bf16".
  std::string matmulPrecision = "highest";
  /// NVIDIA's assembler, which adds machine code to plans for GPUs. Empty:
  /// plans have PTX alone, which the driver compiles.
  std::string ptxas;
  /// Whether a failure of the assembler is an error; otherwise it is a warning,
  /// and the plan has PTX alone.
  bool needsCubin = true;
  /// The machine of the time estimates: a built-in name or a JSON file
  /// (docs/Machines.md).
  std::string machine = "cpu";
  /// The directory that receives one numbered .mlir per phase; empty: none.
  std::string dumpDir;
  /// Global batch size; 0 keeps the module's.
  int64_t batchSize = 0;
  /// The planner of values that are not annotated: "follow" propagates the
  /// annotations, "cheapest" searches exactly.
  std::string partition = "follow";
  /// The objective of "cheapest": the "time" of a step, as estimated for
  /// `machine`, or the "bytes" that a device sends.
  std::string objective = "time";
  /// Most bytes that the plan may need on a device; 0: no limit. If the
  /// cheapest plan does not fit, "cheapest" takes the cheapest one that does.
  int64_t deviceMemory = 0;
  /// Rematerialises all-gathers: weights are gathered again for the backward
  /// pass instead of being held since the forward pass (FSDP2's
  /// `reshard_after_forward`).
  bool regather = false;
  /// The number of microbatches of a step; 0 keeps the module's.
  int64_t microbatches = 0;
  /// The number of ranks of the pipeline: the size of its mesh axis, which is
  /// "stage" if the model has none. 0 takes the model's pipeline away, -1 keeps
  /// it.
  int64_t stages = -1;
  /// Replaces the schedule of the pipeline: "1f1b", or the path of a file that
  /// ends in ".csv"; empty keeps it.
  std::string pipelineSchedule;
  /// The number of stages of each rank; 0 keeps the module's.
  int64_t virtualStages = 0;
  /// Replaces the policy of recomputation: "none", "layer", "stage" or "auto"
  /// (docs/Recomputation.md); empty keeps the module's.
  std::string recompute;
  /// Most bytes of a bucket (a collective of several tensors), as the
  /// communication report counts them; 0: no limit. By default a bucket takes
  /// so long on any link that its latency does not matter.
  int64_t bucketBytes = int64_t(64) << 20;
  /// Whether the plan's explanation has fix-its for each collective; they are
  /// found by trial compilations.
  bool findFixIts = false;
  /// Ends with a remark that compares the plan with the cheapest one.
  bool compareCheapest = false;
  /// The relative gap at which the search for the cheapest plan may stop: from
  /// 0 to less than 1; less than a millionth counts as 0.
  double gap = 1e-4;
  /// The most strategies of all ops, and the most combinations of them, that
  /// the search for the cheapest plan takes on; it fails beyond. 0: the
  /// defaults.
  int64_t maxStrategies = 0;
  /// The most strategies of all ops, summed over the branches of the search for
  /// the least time, before the best plan so far is taken; 0: the default.
  int64_t maxBranchOptions = 0;
  /// Does not check contracts (`shardc.expect`).
  bool ignoreExpectations = false;
  /// Sets every mesh axis and the number of microbatches to 1, without a
  /// pipeline: the unpartitioned program.
  bool singleDevice = false;
  /// Verifies the IR after every pass, not only after every phase: a fault is
  /// found in the pass that makes it.
  bool verifyEach = false;
  /// Checks the partition against the global program in a reference interpreter
  /// (docs/Verification.md). The extent of the check is a remark; a divergence
  /// is an error with exit code Internal.
  bool verifyPartition = false;
};

/// The first error in the options themselves: a mesh that cannot be read, an
/// unknown target, machine, partition or objective, a negative number. Empty if
/// there is none; a compilation with such options ends with ExitCode::Usage.
std::string checkOptions(const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINES_COMPILEOPTIONS_H
