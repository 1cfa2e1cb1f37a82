//===- PlanText.h - Parts of a plan in words --------------------*- C++ -*-===//
//
// Names and texts that the reports share. Pure functions.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TARGET_PLAN_PLANTEXT_H
#define SHARDC_LIB_TARGET_PLAN_PLANTEXT_H

#include "shardc/Report/CommunicationReport.h"

#include "plan_generated.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace shardc {

/// The fingerprint of the plan in `bytes`, which have a field for it: FNV-1a,
/// 64 bits (Fowler, Noll, Vo), of the file with zeros in that field.
uint64_t getFingerprint(llvm::StringRef bytes);

/// The verified plan in `bytes`; borrowed from them. Fails if they are not a
/// plan, or do not match its fingerprint.
llvm::Expected<const rt::fb::Plan *> readPlan(llvm::StringRef bytes);

/// The program called `name`, with a pipeline that of `rank`; or null.
const rt::fb::Program *findProgram(const rt::fb::Plan &plan,
                                   llvm::StringRef name, int64_t rank = -1);

/// "all_reduce", ...
llvm::StringRef getName(rt::fb::CollectiveKind kind);
/// "forward", ...
llvm::StringRef getName(rt::fb::Part part);
/// "f32", ...
llvm::StringRef getName(rt::fb::DType type);
/// "parameter", ...
llvm::StringRef getName(rt::fb::Role role);
/// "parameters", "gradients", ...
llvm::StringRef getName(rt::fb::MemoryKind kind);

/// The sizes of a vector of a plan.
llvm::SmallVector<int64_t> toSizes(const flatbuffers::Vector<int64_t> *sizes);
/// "[4, 8]".
std::string getShapeText(llvm::ArrayRef<int64_t> shape);
/// `[{"data"}, {}]`.
std::string getShardingText(const rt::fb::Plan &plan,
                            const rt::fb::Sharding &sharding);
/// The shape of a shard of a tensor of shape `shape`.
llvm::SmallVector<int64_t> getLocalShape(const rt::fb::Plan &plan,
                                         llvm::ArrayRef<int64_t> shape,
                                         const rt::fb::Sharding &sharding);
int64_t getNumDevices(const rt::fb::Plan &plan);
/// "data=4, model=2 (8 devices)".
std::string getMeshText(const rt::fb::Plan &plan);
/// FLOPs of GEMMs of each device beyond its share of those of the global
/// program, padding included; 0 if the plan does not have them.
uint64_t getRedundantFlops(const rt::fb::Plan &plan,
                           const rt::fb::Program &program);
/// The cost of rematerialised all-gathers in `program`, if there is a choice.
std::optional<RegatherCost> getRegatherCost(const rt::fb::Plan &plan,
                                            const rt::fb::Program &program);
/// Bytes of the arena of a device that runs `program`.
uint64_t getArenaBytes(const rt::fb::Plan &plan,
                       const rt::fb::Program &program);
/// What `program` computes again and saves by it; empty if it does not.
std::string getRecomputeText(const rt::fb::Plan &plan,
                             const rt::fb::Program &program);
/// The program of this name; with a pipeline that of the first rank that sends
/// most. Null if there is none.
const rt::fb::Program *findLargestProgram(const rt::fb::Plan &plan,
                                          llvm::StringRef name);
/// The tasks of `program`, "0F0,0B0"; empty without a pipeline.
std::string getTasksText(const rt::fb::Program &program);
/// The cost of `program` by an objective, if that is known.
std::optional<PlanCost> getPlanCost(const rt::fb::Program &program);
/// Seconds of a run without overlap.
double getSeconds(const rt::fb::TimeEstimate &time);
/// Microseconds, "12.34".
std::string getMicrosecondsText(double seconds);
/// "1234 B", "1.2 KiB", ...
std::string getBytesText(uint64_t bytes);

/// A table with aligned columns; the first row is the header. Columns in
/// `rightAligned` hold numbers. Each line is indented by two spaces.
std::string getTableText(const std::vector<std::vector<std::string>> &rows,
                         llvm::ArrayRef<unsigned> rightAligned);

/// A picture of the devices that hold each block of a tensor (drawSharding),
/// each line indented by four spaces.
std::string getPictureText(const rt::fb::Plan &plan,
                           llvm::ArrayRef<int64_t> shape,
                           const rt::fb::Sharding &sharding);

} // namespace shardc

#endif // SHARDC_LIB_TARGET_PLAN_PLANTEXT_H
