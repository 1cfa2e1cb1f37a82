//===- CommandLine.h - Compile options as flags -----------------*- C++ -*-===//
//
// The flags of CompileOptions, the same in every tool of the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DRIVER_COMMANDLINE_H
#define SHARDC_DRIVER_COMMANDLINE_H

#include "shardc/Driver/Compile.h"

#include "llvm/Support/CommandLine.h"

namespace shardc {

/// The flags that set CompileOptions. Construct one before the command line is
/// parsed, and at most one per process: LLVM's flags are global.
class CompileOptionsFlags {
public:
  explicit CompileOptionsFlags(llvm::cl::OptionCategory &category);

  /// What the user chose.
  CompileOptions get() const;

  /// Says what is wrong with the values: a mesh that cannot be read, an
  /// unknown target, machine or partition, a negative number. Empty if all is
  /// well.
  std::string check() const;

  /// The name of a flag that the user gave; empty if there is none.
  std::string getGiven() const;

private:
  llvm::cl::opt<std::string> mesh;
  llvm::cl::opt<std::string> rules;
  llvm::cl::opt<std::string> target;
  llvm::cl::opt<std::string> dtype;
  llvm::cl::opt<std::string> matmulPrecision;
  llvm::cl::opt<std::string> machine;
  llvm::cl::opt<std::string> dumpDir;
  llvm::cl::opt<int64_t> batchSize, microbatches, bucketBytes;
  llvm::cl::opt<std::string> partition;
  llvm::cl::opt<std::string> objective;
  llvm::cl::opt<double> gap;
  llvm::cl::opt<int64_t> deviceMemory;
  llvm::cl::opt<bool> regather, verifyPartition, ignoreExpectations;
};

} // namespace shardc

#endif // SHARDC_DRIVER_COMMANDLINE_H
