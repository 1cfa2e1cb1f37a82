//===- CommunicationReport.h - What a program sends -------------*- C++ -*-===//
//
// Lists the collectives of a partitioned program with what they cost and why
// they exist, as text for people or JSON. Reads the IR only.
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
  /// How many times a step runs it.
  int64_t runs;
  /// Sent per device in all these runs.
  int64_t wireBytes;
  Part part;
  /// "file:line:column", or empty.
  std::string source;
  std::string cause;
};

/// What it costs to gather weights again for the backward pass, where they are
/// gathered for the forward pass and used in both.
struct RegatherPrice {
  /// Whether the program gathers them again (--regather), or holds them.
  bool isTaken = false;
  /// More bytes on the wire, per device and step, if it does.
  int64_t wireBytes = 0;
  /// Bytes that a device holds from one pass to the other if it does not.
  int64_t heldBytes = 0;
  /// Planned peak of the module, and with the other choice, where known.
  std::optional<int64_t> peakBytes, otherPeakBytes;
};

/// What a plan costs by an objective, and what the cheapest would.
struct PlanCost {
  /// "time": seconds by the model of docs/Machines.md; "bytes": on the wire,
  /// per device.
  std::string objective;
  /// Of a plan that was searched for: the sum that the search minimises. By
  /// time that is not what reports estimate, since it knows neither overlap nor
  /// what merging makes of latencies. Of a plan that follows the annotations:
  /// the estimate of reports, by time with overlap.
  double cost = 0;
  /// A lower bound of the cost of all plans, by the same sum; 0 if none is
  /// known, as by time for a plan that follows the annotations.
  double atLeast = 0;
  /// For a plan that follows the annotations: the cost of the plan that
  /// `--partition=cheapest` takes, which may be the same.
  std::optional<double> cheapest;
  /// Only plans count that need at most so many bytes, because cheaper ones
  /// need more than a device has.
  std::optional<int64_t> within = {};

  /// Whether the plan was searched for.
  bool isSearched() const { return !cheapest; }
  /// Whether the cheapest plan found is the cheapest of all: in whole bytes, or
  /// in time up to a millionth.
  bool isProved() const;
  /// The part of the cost of the cheapest plan found by which the least of all
  /// may be lower: from 0 to 1.
  double getGap() const;
};

struct CommunicationReport {
  /// In program order.
  std::vector<CollectiveEntry> collectives;
  int64_t wireBytesPerDevice = 0;
  /// Floating-point operations of matrix products, padding included.
  int64_t matmulFlopsPerDevice = 0;
  /// Where it is known.
  std::optional<PlanCost> cost;
  /// Where there are such weights.
  std::optional<RegatherPrice> regather;
};

/// The entry of one collective; nullopt if `op` is none.
std::optional<CollectiveEntry> getCollectiveEntry(mlir::Operation *op);

/// Floating-point operations of `op` if it is a matrix product (dot_general or
/// gemm, over the shapes it has now), else 0.
int64_t getMatmulFlops(mlir::Operation *op);

/// The report of `function`, partitioned; kernels are looked into.
CommunicationReport getCommunicationReport(mlir::func::FuncOp function);

/// What is noted on `function`.
std::optional<PlanCost> getPlanCost(mlir::func::FuncOp function);

/// "12.34 us" or "1234 bytes on the wire".
std::string getCostText(llvm::StringRef objective, double cost);

/// Whether the plan is the cheapest, or by how much it is not, in one line.
std::string toString(const PlanCost &cost);

/// How good the plan is that a search found, as the rest of a sentence: ", the
/// least of all plans that use every axis", or "; the least of all plans that
/// use every axis is at most 1.2 % lower".
std::string getProofText(const PlanCost &cost);

/// `{"objective": "bytes", "plan": "searched", "cost": ..., "at_least": ...,
/// "gap": ...}`, by time without cost and bound; or `{"objective": "bytes",
/// "plan": "follow", "cost": ..., "cheapest": ...}`. `within` if plans that
/// need more do not count.
llvm::json::Object toJson(const PlanCost &cost);

/// The price that the passes left on `function`.
std::optional<RegatherPrice> getRegatherPrice(mlir::func::FuncOp function);

/// What the other choice than the one taken would change, in one line.
std::string toString(const RegatherPrice &price);

/// `{"taken": false, "wire_bytes": ..., "held_bytes": ...}`, and
/// `other_peak_bytes` if it is known.
llvm::json::Object toJson(const RegatherPrice &price);

/// `{"collectives": [...], "wire_bytes_per_device": ...,
///   "matmul_flops_per_device": ...}`, `cost` where it is known, and `regather`
///   if there is a choice
llvm::json::Object toJson(const CommunicationReport &report);

/// A table with one line per collective, and totals.
void print(const CommunicationReport &report, llvm::raw_ostream &os);

} // namespace shardc

#endif // SHARDC_REPORT_COMMUNICATIONREPORT_H
