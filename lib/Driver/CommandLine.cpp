//===- CommandLine.cpp - Compile options as flags -------------------------===//

#include "shardc/Driver/CommandLine.h"

using namespace llvm;
using namespace shardc;

CompileOptionsFlags::CompileOptionsFlags(cl::OptionCategory &category)
    : mesh("mesh", cl::cat(category), cl::value_desc("data=4,model=2"),
           cl::desc("Replace the sizes of the mesh's axes")),
      rules("rules", cl::cat(category),
            cl::value_desc("batch=data,hidden=model,embed="),
            cl::desc("Mesh axes of the logical axis names")),
      target(
          "target", cl::cat(category), cl::value_desc("cpu|cuda:sm_90"),
          cl::init("cpu"),
          cl::desc("What to generate code for; cpu is x86-64-v3, and v4 where "
                   "it is")),
      dtype("dtype", cl::cat(category), cl::value_desc("f32|bf16"),
            cl::desc("What a model of f32 computes in; parameters, states and "
                     "the loss are f32 with either")),
      matmulPrecision("matmul-precision", cl::cat(category),
                      cl::init("highest"), cl::value_desc("highest|tf32|bf16"),
                      cl::desc("What factors of large products of f32 may be "
                               "rounded to")),
      machine("machine", cl::cat(category), cl::value_desc("file or name"),
              cl::init("cpu"),
              cl::desc("What times are estimated for: a JSON file, cpu, "
                       "a100-40, a100-80, h100 or h200")),
      dumpDir("shardc-dump-dir", cl::cat(category), cl::value_desc("directory"),
              cl::desc("Write the IR after each phase into this directory")),
      batchSize("batch-size", cl::cat(category), cl::value_desc("rows"),
                cl::init(0),
                cl::desc("Replace the global batch size (0: keep it)")),
      microbatches("microbatches", cl::cat(category), cl::value_desc("number"),
                   cl::init(0),
                   cl::desc("Take the batch in so many parts, one after the "
                            "other, and add up their gradients")),
      bucketBytes("bucket-bytes", cl::cat(category), cl::value_desc("bytes"),
                  cl::init(CompileOptions().bucketBytes),
                  cl::desc("Most bytes of collectives merged into one (0: no "
                           "limit)")),
      partition("partition", cl::cat(category), cl::init("follow"),
                cl::value_desc("follow|cheapest"),
                cl::desc("How to shard what is not annotated: as the "
                         "annotations flow, or by exact search")),
      objective("objective", cl::cat(category), cl::init("time"),
                cl::value_desc("time|bytes"),
                cl::desc("What --partition=cheapest minimises: the time of a "
                         "step on --machine, or the bytes that it sends")),
      gap("gap", cl::cat(category), cl::init(CompileOptions().gap),
          cl::value_desc("fraction"),
          cl::desc("By objective time, the part of the least that the plan of "
                   "--partition=cheapest may cost more")),
      deviceMemory("device-memory", cl::cat(category), cl::value_desc("bytes"),
                   cl::init(0),
                   cl::desc("Most bytes that the plan may need on a device "
                            "(0: no limit)")),
      regather("regather", cl::cat(category),
               cl::desc("Gather weights again for the backward pass instead "
                        "of holding them: less memory, more bytes")),
      verifyPartition("verify-partition", cl::cat(category),
                      cl::desc("Compare the partitioned program with the "
                               "global one in a reference interpreter")),
      ignoreExpectations("ignore-expect", cl::cat(category),
                         cl::desc("Do not check the contracts of the module "
                                  "(shardc.expect)")) {}

CompileOptions CompileOptionsFlags::get() const {
  CompileOptions options;
  options.mesh = mesh;
  options.rules = rules;
  options.target = target;
  options.dtype = dtype;
  options.matmulPrecision = matmulPrecision;
  options.machine = machine;
  options.dumpDir = dumpDir;
  options.batchSize = batchSize;
  options.microbatches = microbatches;
  options.bucketBytes = bucketBytes;
  options.partition = partition;
  options.objective = objective;
  options.gap = gap;
  options.deviceMemory = deviceMemory;
  options.regather = regather;
  options.verifyPartition = verifyPartition;
  options.ignoreExpectations = ignoreExpectations;
  return options;
}

std::string CompileOptionsFlags::check() const {
  // As an option 0 means that nothing was asked for.
  if (microbatches.getNumOccurrences() && microbatches == 0)
    return "--microbatches: expected 1 or more, found 0";
  return checkOptions(get());
}

std::string CompileOptionsFlags::getGiven() const {
  const cl::Option *flags[] = {
      &mesh,        &rules,    &target,          &matmulPrecision,
      &machine,     &dumpDir,  &batchSize,       &partition,
      &objective,   &gap,      &deviceMemory,    &microbatches,
      &bucketBytes, &regather, &verifyPartition, &ignoreExpectations,
      &dtype};
  for (const cl::Option *flag : flags)
    if (flag->getNumOccurrences() > 0)
      return flag->ArgStr.str();
  return "";
}
