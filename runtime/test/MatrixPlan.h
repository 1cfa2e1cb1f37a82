//===- MatrixPlan.h - Plans with GEMMs of sharded matrices ------*- C++ -*-===//
//
// Edits that add parameters, collectives and GEMMs behind the commands of the
// test plan (TestPlan.h).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TEST_MATRIXPLAN_H
#define SHARDC_RT_TEST_MATRIXPLAN_H

#include "TestPlan.h"

#include "exec/ProgramBuffers.h"
#include "shardc-rt/Executor.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardc::rt::test {

/// The commands of the test plan come first.
constexpr uint32_t firstAddedCommand = 7;

template <typename T>
T *addCommand(fb::PlanT &plan, T table) {
  auto command = std::make_unique<fb::CommandT>();
  command->operation.Set(std::move(table));
  plan.programs[0]->commands.push_back(std::move(command));
  return static_cast<T *>(plan.programs[0]->commands.back()->operation.value);
}

/// A parameter, and the buffer of its shard. `axes` are those of each
/// dimension.
inline uint32_t addParameter(fb::PlanT &plan, const char *name,
                             const std::vector<int64_t> &shape,
                             std::vector<std::vector<uint16_t>> axes) {
  auto tensor = std::make_unique<fb::TensorT>();
  tensor->name = name;
  tensor->role = fb::Role::Parameter;
  tensor->shape = shape;
  tensor->init = std::make_unique<fb::InitializerT>();
  tensor->init->kind = fb::InitKind::Uniform;
  tensor->init->a = -1;
  tensor->init->b = 1;
  tensor->sharding = std::make_unique<fb::ShardingT>();
  std::vector<int64_t> local = shape;
  for (size_t dim = 0; dim < axes.size(); ++dim) {
    for (uint16_t axis : axes[dim]) {
      int64_t size = plan.mesh->axes[axis]->size;
      local[dim] = (local[dim] + size - 1) / size;
    }
    tensor->sharding->dims.push_back(std::make_unique<fb::DimShardingT>());
    tensor->sharding->dims.back()->axes = axes[dim];
  }
  tensor->offset = plan.arena_bytes;
  uint32_t buffer = addOwnBuffer(plan, fb::DType::F32, local);
  tensor->bytes = plan.programs[0]->buffers[buffer]->bytes;
  // Before the input.
  plan.tensors.insert(plan.tensors.end() - 1, std::move(tensor));
  return buffer;
}

/// Moves a buffer over `axes` into a new one of a shape, which it returns.
inline uint32_t addCollective(fb::PlanT &plan, fb::CollectiveKind kind,
                              uint32_t in, std::vector<int64_t> shape, int dim,
                              std::vector<uint16_t> axes = {0}) {
  fb::CollectiveStartT start;
  start.kind = kind;
  start.axes = std::move(axes);
  auto item = std::make_unique<fb::CollectiveItemT>();
  item->in = in;
  item->out = addOwnBuffer(plan, fb::DType::F32, std::move(shape));
  item->dim = dim;
  uint32_t out = item->out;
  start.items.push_back(std::move(item));
  fb::CollectiveWaitT wait;
  wait.start = plan.programs[0]->commands.size();
  addCommand(plan, std::move(start));
  addCommand(plan, wait);
  return out;
}

inline uint32_t addAllGather(fb::PlanT &plan, uint32_t in,
                             std::vector<int64_t> shape, int dim,
                             std::vector<uint16_t> axes = {0}) {
  return addCollective(plan, fb::CollectiveKind::AllGather, in,
                       std::move(shape), dim, std::move(axes));
}

/// Adds a result of the program, of a global shape; `axes` are those of each
/// dimension, none unless they are given.
inline void addResult(fb::PlanT &plan, const char *name, uint32_t buffer,
                      std::vector<int64_t> shape,
                      std::vector<std::vector<uint16_t>> axes = {}) {
  auto result = std::make_unique<fb::ResultT>();
  result->name = name;
  result->buffer = buffer;
  result->sharding = std::make_unique<fb::ShardingT>();
  axes.resize(shape.size());
  for (std::vector<uint16_t> &ofDim : axes) {
    result->sharding->dims.push_back(std::make_unique<fb::DimShardingT>());
    result->sharding->dims.back()->axes = std::move(ofDim);
  }
  result->shape = std::move(shape);
  plan.programs[0]->results.push_back(std::move(result));
}

/// Adds a GEMM, whose result is the result "c" of the program.
inline fb::GemmT *addGemm(fb::PlanT &plan, fb::GemmT gemm) {
  gemm.c = addOwnBuffer(plan, fb::DType::F32, {gemm.m, gemm.n});
  addResult(plan, "c", gemm.c, {gemm.m, gemm.n});
  return addCommand(plan, gemm);
}

/// A second axis, "e", of size 2.
inline void addAxis(fb::PlanT &plan) {
  auto axis = std::make_unique<fb::AxisT>();
  axis->name = "e";
  axis->size = 2;
  plan.mesh->axes.push_back(std::move(axis));
}

inline void addClear(fb::PlanT &plan, uint32_t buffer) {
  fb::ClearT clear;
  clear.buffer = buffer;
  addCommand(plan, clear);
}

/// Copies a buffer into a new one, which it returns.
inline uint32_t addCopyOf(fb::PlanT &plan, uint32_t buffer) {
  fb::CopyT copy;
  copy.in = buffer;
  copy.out = addOwnBuffer(plan, fb::DType::F32,
                          plan.programs[0]->buffers[buffer]->shape);
  addCommand(plan, copy);
  return copy.out;
}

/// Moves the last command to place `at`, behind all collectives.
inline void moveLast(fb::PlanT &plan, size_t at) {
  auto &commands = plan.programs[0]->commands;
  std::rotate(commands.begin() + at, commands.end() - 1, commands.end());
}

/// Rows [run * rows, (run + 1) * rows) of a matrix in the runs of a loop.
inline uint32_t addRowsOfRun(fb::PlanT &plan, uint32_t matrix, int64_t rows) {
  auto &buffers = plan.programs[0]->buffers;
  auto slice = std::make_unique<fb::BufferT>(*buffers[matrix]);
  slice->stride = slice->bytes / slice->shape[0] * rows;
  slice->bytes = slice->stride;
  slice->shape[0] = rows;
  buffers.push_back(std::move(slice));
  return buffers.size() - 1;
}

/// Makes the commands from `at` on the body of a loop of two runs.
inline void addLoopFrom(fb::PlanT &plan, size_t at) {
  addLoop(plan, at, 2);
  auto &commands = plan.programs[0]->commands;
  commands[at]->operation.AsLoop()->commands = commands.size() - at - 1;
}

/// Result `name` of two steps without shared memory, where all collectives
/// copy, and of two with it. All have the same bits, and count the same bytes.
inline void expectBitsAndBytesOfCopies(const std::string &bytes,
                                       const char *name, int threads,
                                       bool orderedSums = false) {
  auto plan = Plan::parse(bytes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  HostArray x(DType::F32, {12});
  std::vector<HostArray> results;
  uint64_t wireBytes[2];
  for (bool share : {false, true}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    options.orderedSums = orderedSums;
    options.poisonPadding = true;
    auto executor = Executor::create(**context, *plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    // The second step reads the shards again.
    for (int step = 0; step < 2; ++step) {
      auto result = (*executor)->step({{"x", x.view()}});
      ASSERT_TRUE(result.ok()) << result.status();
      results.push_back(*result->find(name));
      wireBytes[share] = result->wireBytes;
    }
  }
  for (int step : {0, 1})
    EXPECT_EQ(0,
              std::memcmp(results[step + 2].data.data(),
                          results[step].data.data(), results[step].data.size()))
        << "step " << step;
  EXPECT_GT(wireBytes[1], 0u);
  EXPECT_EQ(wireBytes[0], wireBytes[1]);
}

/// A plan whose buffers have addresses, without an executor.
class LoadedPlan {
public:
  explicit LoadedPlan(const std::string &bytes)
      : plan(*Plan::parse(bytes)),
        kernels(*KernelLibrary::load(plan->spec(), "")),
        layout((*ArenaLayout::create(plan->spec(), /*share=*/true))[0]),
        memory(layout.bytes()),
        ranks{{plan->spec(), *kernels, layout, memory.data(), {}, 0}},
        buffers(ranks, 0) {}

  const ProgramSpec &program() const { return plan->spec().programs[0]; }

private:
  std::shared_ptr<const Plan> plan;
  std::unique_ptr<KernelLibrary> kernels;
  ArenaLayout layout;
  std::vector<char> memory;
  std::vector<DeviceSet> ranks;

protected:
  ProgramBuffers buffers;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_MATRIXPLAN_H
