//===- CommunicationReport.h - The collectives of a program -----*- C++ -*-===//
//
// Lists the collectives of a partitioned program with their costs and causes,
// as text for people or JSON. Reads the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_COMMUNICATIONREPORT_H
#define SHARDC_REPORT_COMMUNICATIONREPORT_H

#include "shardc/CostModel/WireBytes.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace shardc {

/// One collective op; several tensors in it are one entry.
struct CollectiveEntry {
  CollectiveKind kind;
  std::vector<std::string> axes;
  int64_t groupSize;
  /// Of the tensors that the group sees (see getWireBytes).
  int64_t bytes;
  /// The number of times that a step runs it.
  int64_t runs;
  /// Sent per device, summed over these runs.
  int64_t wireBytes;
  Part part;
  /// "file:line:column", or empty.
  std::string source;
  std::string cause;
  /// The stage of a pipeline that it is on, of a transfer the one that sends.
  std::optional<int64_t> stage = std::nullopt;
};

/// The cost of rematerialised all-gathers: of gathering weights again for the
/// backward pass where both passes use them (FSDP2's `reshard_after_forward`).
struct RegatherCost {
  /// Whether the program gathers them again (--regather) or holds them.
  bool isTaken = false;
  /// Additional bytes on the wire, per device and step, if it gathers again.
  int64_t wireBytes = 0;
  /// Bytes that a device holds from one pass to the other if it does not.
  int64_t heldBytes = 0;
  /// The planned peak of the module, and the peak under the other choice if
  /// known.
  std::optional<int64_t> peakBytes, otherPeakBytes;
};

/// The cost of a plan under an objective, and that of the cheapest plan.
struct PlanCost {
  /// "time": seconds by the model of docs/Machines.md; "bytes": on the wire,
  /// per device.
  std::string objective;
  /// Of a searched plan: the sum that the search minimises. By time it differs
  /// from the estimate of reports, since it leaves out overlap and the latency
  /// that merging saves. Of a plan that follows the annotations: the estimate
  /// of reports, by time with overlap.
  double cost = 0;
  /// A lower bound of the cost of all plans, in the same sum; 0 if none is
  /// known, as by time for a plan that follows the annotations.
  double atLeast = 0;
  /// For a plan that follows the annotations: the cost of the plan of
  /// `--partition=cheapest`, which may be the same plan.
  std::optional<double> cheapest;
  /// The memory limit that cheaper plans exceed: `cost` and bound are those of
  /// plans that need at most so many bytes.
  std::optional<int64_t> within = {};

  /// Whether the plan comes from a search.
  bool isSearched() const { return !cheapest; }
  /// Whether the cheapest plan found is proved optimal: in whole bytes, or in
  /// time up to a millionth.
  bool isProved() const;
  /// The relative gap of the cheapest plan found, from 0 to 1: the share of its
  /// cost by which the optimum may be lower.
  double getGap() const;
};

struct CommunicationReport {
  /// In program order.
  std::vector<CollectiveEntry> collectives;
  /// With a pipeline, those of the rank that sends most.
  int64_t wireBytesPerDevice = 0;
  /// Floating-point operations of GEMMs, padding included. With a pipeline,
  /// those of the rank that computes most.
  int64_t matmulFlopsPerDevice = 0;
  /// With a pipeline, by rank the bytes that a device of it sends; else empty.
  std::vector<int64_t> wireBytesByRank = {};
  /// If it is known.
  std::optional<PlanCost> cost;
  /// If there are such weights.
  std::optional<RegatherCost> regather;
};

/// The entry of one collective; nullopt if `op` is none.
std::optional<CollectiveEntry> getCollectiveEntry(mlir::Operation *op);

/// Floating-point operations of `op` if it is a GEMM (dot_general or gemm, over
/// the shapes that it has now), else 0.
int64_t getMatmulFlops(mlir::Operation *op);

/// The report of `function`, partitioned; it covers the ops inside of kernels.
CommunicationReport getCommunicationReport(mlir::func::FuncOp function);

/// The cost that passes noted on `function`.
std::optional<PlanCost> getPlanCost(mlir::func::FuncOp function);

/// "12.34 us" or "1234 bytes on the wire".
std::string getCostText(llvm::StringRef objective, double cost);

/// The optimality of the plan in one line: it is the cheapest, or by how much
/// it is not.
std::string toString(const PlanCost &cost);

/// The optimality of a searched plan, as the rest of a sentence: ", the least
/// of all plans that use every axis", or "; the least of all plans that use
/// every axis is at most 1.2 % lower".
std::string getProofText(const PlanCost &cost);

/// `{"objective": "bytes", "plan": "searched", "cost": ..., "at_least": ...,
/// "gap": ...}`, by time without cost and bound; or `{"objective": "bytes",
/// "plan": "follow", "cost": ..., "cheapest": ...}`. `within` is present if
/// plans above a memory limit do not count.
llvm::json::Object toJson(const PlanCost &cost);

/// The cost that passes noted on `function`.
std::optional<RegatherCost> getRegatherCost(mlir::func::FuncOp function);

/// The effect of the choice that was not taken, in one line.
std::string toString(const RegatherCost &cost);

/// `{"taken": false, "wire_bytes": ..., "held_bytes": ...}`, and
/// `other_peak_bytes` if it is known.
llvm::json::Object toJson(const RegatherCost &cost);

/// `{"collectives": [...], "wire_bytes_per_device": ...,
///   "matmul_flops_per_device": ...}`, `wire_bytes_by_rank` with a pipeline,
///   `cost` where it is known, and `regather` if there is a choice
llvm::json::Object toJson(const CommunicationReport &report);

/// A table with one line per collective, and totals.
void print(const CommunicationReport &report, llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_REPORT_COMMUNICATIONREPORT_H
