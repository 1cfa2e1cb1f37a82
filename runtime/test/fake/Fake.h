//===- Fake.h - A recording fake of the vendor's libraries ------*- C++ -*-===//
//
// A shared library for tests that exports the functions of libcuda, libcublasLt
// and libnccl which the runtime uses. Memory of the GPU is memory of the host,
// so that copies, GEMMs and reductions really happen; kernels of plans are
// taken from a library for CPUs. The work of a stream runs at once. Captured
// work runs when its graph is launched, in an order drawn at random among those
// that the graph allows. Every call is recorded, misuse that a driver would
// punish is an error, and any call can be made to fail.
//
// Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TEST_FAKE_FAKE_H
#define SHARDC_RT_TEST_FAKE_FAKE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace shardc::rt::test {

struct Fake {
  /// Settings.
  int64_t failAt = 0; ///< Call number that fails, from 1; 0: none.
  int gpus = 1;
  /// Of each of them. SHARDC_FAKE_MEMORY sets it from outside.
  uint64_t memoryBytes = uint64_t(80) << 30;
  /// Whether kernels, GEMMs and copies within a GPU do nothing, memory is not
  /// filled and collectives of NCCL move an element: so that large ones can be
  /// measured.
  /// SHARDC_FAKE_IDLE=1 sets it from outside.
  bool isIdle = false;
  int architecture = 90;
  int ncclVersion = 22800;
  /// Has the plan's kernels, in the CPU's ABI; a plan for emulated-gpu carries
  /// such a library. Libraries of several plans are separated by colons, in the
  /// order in which they are loaded; the last one serves all further plans. The
  /// default is the value of SHARDC_FAKE_KERNELS.
  std::string kernelLibrary;
  int64_t plansLoaded = 0;
  std::string jitError; ///< The compiler's log of modules that do not load.
  int cubinError = 0;   ///< The result of loading a cubin; 0: success.
  uint32_t seed = 1;    ///< Of the order in graphs.
  int64_t queriesNotReady = 0; ///< Answers of cuEventQuery before it is done.
  int algorithms = 4;          ///< Of a GEMM.
  int fastAlgorithm = 0;       ///< The others take longer.
  uint64_t workspaceBytes = 1024; ///< That GEMMs ask for.
  /// The error that communicators report once they are complete; 0: none.
  int ncclError = 0;
  int64_t ncclBusy = 0; ///< Further answers that a communicator is busy.

  /// Observations.
  std::vector<std::string> calls;      ///< Names, in order.
  std::vector<std::string> details;    ///< The same with arguments.
  std::map<std::string, int64_t> live; ///< Handles by kind.
  std::vector<std::string> ranges;     ///< Of NVTX: names, and "" for an end.
  uint64_t bytesAllocated = 0;         ///< On GPUs, at present.

  int64_t handles() const {
    int64_t sum = 0;
    for (const auto &[kind, count] : live)
      sum += count;
    return sum;
  }
};

} // namespace shardc::rt::test

/// The state of the fake.
extern "C" shardc::rt::test::Fake *shardcFake();

#endif // SHARDC_RT_TEST_FAKE_FAKE_H
