//===- Cuda.h - Executors on NVIDIA GPUs ------------------------*- C++ -*-===//
//
// The driver and the vendor's libraries are opened at run time: a program that
// uses this header also starts where there are none.
//
// Thread-safety: the functions may be called from any thread. An executor takes
// one call at a time (Executor.h).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_CUDA_H
#define SHARDC_RT_CUDA_H

#include "shardc-rt/Executor.h"
#include "shardc-rt/Store.h"

#include "absl/time/time.h"

namespace shardc::rt {

struct CudaOptions {
  /// Paths of the libraries; empty: libcuda.so.1, and libcublasLt.so.13 or .12,
  /// as the loader finds them.
  std::string driverPath;
  std::string cublasLtPath;
  /// Empty: libnccl.so.2.
  std::string ncclPath;
  /// A profiler's library that is told of each command (NVTX), as profilers
  /// name it in NVTX_INJECTION64_PATH; empty: none.
  std::string nvtxPath;
  /// The first GPU, by the driver's numbers, and the number of GPUs.
  int gpu = 0;
  int gpus = 1;
  /// The connection to the other processes that run the plan; null: there are
  /// none. Borrowed for as long as the executor lives.
  Store *store = nullptr;
  /// Most bytes of scratch memory for the algorithm of a GEMM.
  uint64_t gemmWorkspaceBytes = uint64_t(32) << 20;
  /// The file of the fastest algorithms of GEMMs. GEMMs that it does not have
  /// for this GPU, driver and library are timed when a plan is loaded. Empty:
  /// the first algorithm of the library's heuristics, without timing.
  std::string gemmCachePath;
  /// Longest wait for a run, or for other processes.
  absl::Duration deadline = absl::Minutes(5);
  /// Wait for every command before the next is issued, without a graph: slow,
  /// but an error names the command it happened in.
  bool serialize = false;
};

/// A GPU that the driver shows.
struct GpuInfo {
  std::string name;
  int architecture; ///< 90 for sm_90.
};

/// The GPUs of this machine. Unavailable names the libraries that were looked
/// for.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::vector<GpuInfo>>
listGpus(const CudaOptions &options = {});

/// Runs a plan for GPUs. The devices of the mesh are
///   - all on one GPU, in one process: the default;
///   - one on each of `gpus` GPUs of one process;
///   - spread over processes. Each holds the same number of devices, one on
///     each of its GPUs, and makes the same calls of the executor in the same
///     order. All pass the same global arrays and get the same results.
/// GPUs communicate through NCCL. Each device has an arena of exactly the bytes
/// of the plan, with a pipeline those of its rank; a process may have devices
/// of several ranks. Each GPU captures a program once as a graph and launches
/// it for every run, so that a run allocates nothing. Two runs can be in
/// flight: the host reads the results of one while the GPU works on the next.
/// Beside the arenas a GPU holds the scratch memory of GEMMs and of
/// collectives, one piece per device.
///
/// Unavailable: a library was not found, with the names looked for, or the GPU
/// is older than the plan's code. DataLoss has the log of the driver's
/// compiler. ResourceExhausted: out of memory. Aborted, DeadlineExceeded:
/// another process failed, has gone or does not answer; then, and after any
/// other error of a run, nothing can be run any more. Errors name the rank, the
/// command and its place in the model.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::unique_ptr<Executor>>
createCudaExecutor(std::shared_ptr<const Plan> plan,
                   ExecutorOptions options = {}, CudaOptions cudaOptions = {});

} // namespace shardc::rt

#endif // SHARDC_RT_CUDA_H
