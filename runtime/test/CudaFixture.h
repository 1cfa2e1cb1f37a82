//===- CudaFixture.h - Executors against the fake ---------------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_CUDAFIXTURE_H
#define SHARDC_RT_TEST_CUDAFIXTURE_H

#include "fake/Fake.h"

#include "TemporaryFolder.h"
#include "TestPlan.h"

#include "plan/PlanSpec.h"
#include "shardc-rt/Cuda.h"

#include <algorithm>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace shardc::rt::test {

/// Opens the fake, and checks at the end that nothing is left in it.
class CudaExecutorTest : public ::testing::Test {
protected:
  void SetUp() override {
    // Keeps the library, and so its counters, while executors come and go.
    library = dlopen(FAKE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto get = reinterpret_cast<Fake *(*)()>(dlsym(library, "shardcFake"));
    fake = get();
    *fake = Fake();
    fake->kernelLibrary = TEST_KERNELS;
    options.driverPath = options.cublasLtPath = options.ncclPath = FAKE_LIBRARY;
  }
  void TearDown() override {
    for (const auto &[kind, count] : fake->live)
      EXPECT_EQ(count, 0) << kind;
    EXPECT_EQ(fake->bytesAllocated, 0);
    dlclose(library);
  }

  /// The plan of TestPlan.h for a GPU, with PTX that declares its kernels.
  static std::shared_ptr<const Plan>
  makeGpuPlan(int devices, const std::function<void(fb::PlanT &)> &edit = {}) {
    auto parsed = Plan::parse(makePlan(devices, [&](fb::PlanT &plan) {
      onGpu(plan);
      std::string ptx = ".version 7.8\n"
                        ".entry test_scale( .param .u64 a, .param .u64 b,\n"
                        "  .param .u64 c ) { ret; }\n"
                        ".entry test_update( .param .u64 a, .param .u64 b,\n"
                        "  .param .u64 c, .param .u64 d ) { ret; }\n";
      plan.code.assign(ptx.begin(), ptx.end());
      if (edit)
        edit(plan);
    }));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *parsed : nullptr;
  }

  /// A plan of one program for CPUs as one for a GPU, in the same order.
  static std::shared_ptr<const Plan> inOrder(const Plan &cpu) {
    PlanSpec gpu = cpu.spec();
    auto model = makeGpuPlan(1);
    gpu.gpuTarget = model->spec().gpuTarget;
    gpu.code = model->spec().code;
    ProgramSpec &program = gpu.programs[0];
    std::vector<Command> commands;
    auto add = [&](auto operation) {
      Command &command = commands.emplace_back();
      command.operation = operation;
      command.part = Part::Forward;
    };
    add(UploadCommand{2});
    for (const Command &command : program.commands) {
      if (std::holds_alternative<CollectiveWaitCommand>(command.operation))
        continue;
      uint32_t before = commands.size() - 1;
      bool communicates =
          std::holds_alternative<CollectiveStartCommand>(command.operation);
      commands.push_back(command);
      if (communicates)
        commands.back().stream = Stream::Communication;
      if (commands.back().stream != commands[before].stream)
        commands.back().after = {before};
      if (auto *launch = std::get_if<LaunchCommand>(&commands.back().operation))
        launch->threads = 32;
    }
    for (uint32_t result = 0; result < program.results.size(); ++result)
      add(DownloadCommand{result});
    program.commands = std::move(commands);
    return makeUnverifiedPlan(std::move(gpu));
  }

  absl::StatusOr<std::unique_ptr<Executor>>
  create(std::shared_ptr<const Plan> plan) {
    ExecutorOptions executorOptions;
    executorOptions.seed = 7;
    return createCudaExecutor(std::move(plan), executorOptions, options);
  }

  static NamedArrays inputs() {
    static const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t shape[] = {12};
    return {{"x", {DType::F32, shape, x.data()}}};
  }

  /// Results and parameters of some steps, as bits.
  static absl::StatusOr<std::vector<std::byte>> train(Executor &executor,
                                                      int steps) {
    std::vector<std::byte> bits;
    auto append = [&](const HostArray &array) {
      bits.insert(bits.end(), array.data.begin(), array.data.end());
    };
    if (absl::Status s = executor.initializeParameters(); !s.ok())
      return s;
    // GEMMs whose sums are exact in any order.
    HostArray m(DType::F32, {12, 4});
    for (int i = 0; i < 48; ++i)
      m.values<float>()[i] = i % 7 - 3;
    if (absl::Status s = executor.setTensor("m", m.view()); !s.ok())
      return s;
    for (int step = 0; step < steps; ++step) {
      absl::StatusOr<RunResult> result = executor.step(inputs());
      if (!result.ok())
        return result.status();
      for (const auto &[name, array] : result->results)
        append(array);
    }
    for (const char *name : {"w", "m"}) {
      absl::StatusOr<HostArray> array = executor.getTensor(name);
      if (!array.ok())
        return array.status();
      append(*array);
    }
    return bits;
  }

  int64_t countCalls(const std::string &name) const {
    return std::count(fake->calls.begin(), fake->calls.end(), name);
  }

  void *library = nullptr;
  /// A path without a file.
  TemporaryFolder empty;
  Fake *fake = nullptr;
  CudaOptions options;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_CUDAFIXTURE_H
