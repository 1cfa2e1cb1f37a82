//===- MemoryReport.h - The use of a device's memory ------------*- C++ -*-===//
//
// Reads a module after `memory`. A value class; thread-safe to read.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_MEMORYREPORT_H
#define SHARDC_REPORT_MEMORYREPORT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <array>
#include <string>
#include <vector>

namespace shardc {

/// The use of a buffer.
enum class MemoryKind {
  Parameters,
  Gradients,
  OptimizerStates,
  Activations,
  Inputs,
  /// Everything else, gaps of the arena included.
  Workspace,
};
constexpr size_t numMemoryKinds = 6;

/// "parameters", "gradients", "optimizer", "activations", "inputs",
/// "workspace".
llvm::StringRef toString(MemoryKind kind);

/// One buffer that is alive at the peak.
struct MemoryBuffer {
  /// The argument's name, or the op that computes it.
  std::string name;
  int64_t bytes = 0;
  MemoryKind kind = MemoryKind::Workspace;
  /// "file:line:col" of the op that computes it; empty for arguments.
  std::string source;
};

/// A short name of the op that computes `value`, of a kernel the one inside.
std::string getComputedName(mlir::OpResult value);

/// A buffer over the step. Steps are the ops of the program, of a loop those of
/// its body, in the order of execution.
struct MemoryLifetime {
  MemoryBuffer buffer;
  /// The steps that write it first and use it last; of an argument all.
  int64_t firstStep = 0, lastStep = 0;
};

/// The places of the tensors of one collective. One region moves as one piece.
struct MemoryBucket {
  /// Number of the collective among those of the program and its sends, in
  /// order.
  unsigned collective;
  unsigned tensors;
  /// Regions in which operands and results lie, padding of the alignment aside.
  unsigned operandRegions, resultRegions;
};

/// The memory of one device at the point of the step where most is in use.
class MemoryReport {
public:
  /// Reads the train step of `module`, or its only function; offsets must be
  /// there. With a pipeline that of the rank with the largest arena.
  explicit MemoryReport(mlir::ModuleOp module);
  /// Reads `step`, which may be null, of a device whose arena has these bytes.
  MemoryReport(mlir::func::FuncOp step, int64_t arenaBytes);

  /// Bytes of the arena, exactly those that the runtime allocates per device.
  int64_t getArenaBytes() const { return arenaBytes; }
  /// Bytes of one kind at the peak; the kinds sum to the arena.
  int64_t getBytes(MemoryKind kind) const { return bytes[size_t(kind)]; }
  /// The largest buffers alive at the peak, largest first, at most ten.
  llvm::ArrayRef<MemoryBuffer> getLargest() const { return largest; }
  /// All buffers: first the arguments, then the others in the order in which
  /// they are first written. Written over another one, a buffer is part of it.
  llvm::ArrayRef<MemoryLifetime> getLifetimes() const { return lifetimes; }
  int64_t getNumSteps() const { return numSteps; }
  /// The first step at which most bytes are in use.
  int64_t getPeakStep() const { return peakStep; }
  /// The collectives of several tensors, in order.
  llvm::ArrayRef<MemoryBucket> getBuckets() const { return buckets; }

  /// A table for people.
  void print(llvm::raw_ostream &os) const;
  /// {peak_bytes_per_device, parameters, ..., largest: [{name, bytes, kind,
  /// source}], buckets: [{collective, tensors, operand_regions,
  /// result_regions}]}.
  llvm::json::Object toJson() const;

private:
  int64_t arenaBytes = 0, numSteps = 0, peakStep = 0;
  std::array<int64_t, numMemoryKinds> bytes{};
  std::vector<MemoryBuffer> largest;
  std::vector<MemoryLifetime> lifetimes;
  std::vector<MemoryBucket> buckets;
};

/// A note for each of the largest buffers.
void attachLargest(mlir::InFlightDiagnostic &error, const MemoryReport &report);

} // namespace shardc

#endif // SHARDC_REPORT_MEMORYREPORT_H
