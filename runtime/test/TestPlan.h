//===- TestPlan.h - A small plan made by hand -------------------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_TESTPLAN_H
#define SHARDC_RT_TEST_TESTPLAN_H

#include "plan_generated.h"

#include <functional>
#include <string>
#include <vector>

namespace shardc::rt::test {

/// A plan over `devices` devices of one axis "d": x [12] sharded on d and a
/// replicated parameter w [4], padded shards and all. A step computes
/// y = 2x + coordinate, gathers y, reduces it over d into g [12], multiplies
/// a [1,12] by [12,4] GEMM into h, and updates w by a kernel; the commands
/// are a launch, a start and a wait for each of the two collectives, the
/// GEMM and a launch. `edit` changes the plan's tables before it is written.
std::string makePlan(int devices,
                     const std::function<void(fb::PlanT &)> &edit = {});

/// An edit for 1, 2 or 4 devices that makes two loops of the step: y comes in
/// three parts, each with 100 times the run added (commands 0 and 1), and h is
/// the sum of two equal GEMMs (6 to 8).
void addLoops(fb::PlanT &plan);

/// An edit that adds an all-reduce of buffers of its own, which starts before y
/// is computed (command 0) and is waited for behind (command 2).
void addEarlyAllReduce(fb::PlanT &plan);

/// An edit, of plans for CPUs or GPUs, that adds a copy "w.bf16" of w. The
/// update writes it, and the loss is its element 0 before that. So is that of
/// another program, "evaluate", the second; "round_parameters" is the last.
void addCopy(fb::PlanT &plan);

/// An edit that adds a program "predict" with the prediction y [12] of x.
void addPrediction(fb::PlanT &plan);

/// An edit that makes it a plan for a GPU, as far as reading goes: the commands
/// are the upload of x, the launch, the two collectives, the GEMM, the
/// launch and the downloads of the results, on their streams and with their
/// events.
void onGpu(fb::PlanT &plan);

/// An edit that makes it a pipeline of `ranks` stages over the mesh
/// stage=`ranks`, data=2, copy=2. x [32 * microbatches] is sharded over data;
/// of a device's 16 rows for each microbatch it uses the first two. Stage s
/// computes h = h * w_s + 10 * s + microbatch with one parameter each, and the
/// loss is the sum of the last h. Tasks are in the order of 1F1B. Then dw_s is
/// the gradient and n the sum of all of them, an all-reduce over stage and
/// data; the update is w_s -= dw_s / 1024 + n / 4096. Each rank counts steps in
/// "t". "evaluate" computes the loss. Rank r leaves 64 * r bytes of its arena
/// unused.
void addPipeline(fb::PlanT &plan, int ranks, int microbatches);

/// An edit that makes this pipeline one for GPUs, with PTX that declares its
/// kernels. Each command comes after what the CPU's list has in front of it.
void onGpus(fb::PlanT &plan);

/// A plan with that pipeline.
std::string makePipelinePlan(int ranks, int microbatches,
                             const std::function<void(fb::PlanT &)> &edit = {});

/// Makes command `at` of the step a loop of `runs` runs.
void addLoop(fb::PlanT &plan, size_t at, int64_t runs);

/// A new buffer of the step, of 4 bytes an element, in unused bytes of the
/// arena.
int32_t addOwnBuffer(fb::PlanT &plan, fb::DType dtype,
                     std::vector<int64_t> shape);

/// `plan` with the correct fingerprint.
std::string withFingerprint(std::string plan);

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_TESTPLAN_H
