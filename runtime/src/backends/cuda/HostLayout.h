//===- HostLayout.h - Inputs and results of runs on the host ----*- C++ -*-===//
//
// A run reads inputs from pinned memory and writes its results there. There are
// two such batches: the host fills one and reads its results while the GPU
// works with the other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_HOSTLAYOUT_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_HOSTLAYOUT_H

#include "plan/PlanSpec.h"
#include "shardc-rt/Executor.h"

#include <map>
#include <optional>

namespace shardc::rt::cuda {

/// A shard on the host: its device and its offset in a batch, in bytes.
struct HostShard {
  int64_t device;
  uint64_t offset;
};

/// Offsets in a batch of all inputs and results of this process's devices; the
/// same for all batches of a plan, which must outlive it. Devices that hold the
/// same shard share its place. Immutable.
class HostLayout {
public:
  /// `devices` are those of this process, by their numbers in the mesh. Large
  /// inputs are copied by `threads` threads.
  HostLayout(const PlanSpec &plan, std::vector<int64_t> devices, int threads);

  uint64_t bytes() const { return total; }

  /// The offset for `device` of an input or label: tensor `tensor` of the plan,
  /// with a pipeline of that of the device's rank.
  uint64_t inputOffset(uint32_t tensor, int64_t device) const {
    return inputOffsets.at({device, tensor});
  }

  /// The different shards of result `result` of program `program` that this
  /// process has.
  const std::vector<HostShard> &resultShards(size_t program,
                                             size_t result) const {
    return results[program][result];
  }

  /// Inputs and labels of all programs, in the order of the plan.
  size_t numInputs() const { return inputs.size(); }
  bool takes(size_t program, size_t input) const;
  /// The offset of an input's shard for `device`; none: its pipeline rank does
  /// not take it.
  std::optional<uint64_t> offsetOf(size_t input, int64_t device) const;
  /// Of a shard; padded: with what is behind it in a batch.
  uint64_t inputBytes(size_t input) const {
    return inputs[input].tensor->bytes;
  }
  uint64_t paddedBytes(size_t input) const {
    return padded(inputs[input].tensor->bytes);
  }

  /// Copies the shards of an input, which has been checked, into `batch`; large
  /// ones in several threads.
  void scatter(size_t input, const NamedArrays &arrays, char *batch) const;

  /// The results of program `program`, as global arrays with the shards of this
  /// process filled in.
  std::vector<HostArray> gather(size_t program, const char *batch) const;

private:
  struct Input {
    const TensorSpec *tensor;
    std::vector<HostShard> shards;       ///< That differ.
    std::map<int64_t, uint64_t> offsets; ///< By device.
  };

  uint64_t padded(uint64_t bytes) const {
    return (bytes + plan.alignment - 1) / plan.alignment * plan.alignment;
  }
  uint64_t take(uint64_t bytes);
  void addInput(uint32_t tensor);

  const PlanSpec &plan;
  const std::vector<int64_t> devices;
  const int threads;
  uint64_t total = 0;
  std::vector<Input> inputs;
  /// By device and its tensor.
  std::map<std::pair<int64_t, uint32_t>, uint64_t> inputOffsets;
  /// By program, then result.
  std::vector<std::vector<std::vector<HostShard>>> results;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_HOSTLAYOUT_H
