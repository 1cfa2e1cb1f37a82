//===- HostLayout.cpp - Inputs and results of runs on the host ------------===//

#include "backends/cuda/HostLayout.h"

#include "base/CopyToMemory.h"
#include "base/Parts.h"
#include "exec/Shards.h"

#include <set>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

HostLayout::HostLayout(const PlanSpec &plan, std::vector<int64_t> devices,
                       int threads)
    : plan(plan), devices(std::move(devices)), threads(threads) {
  for (uint32_t i = 0; i < plan.tensors.size(); ++i)
    if (isFed(plan.tensors[i].role))
      addInput(i);
  for (size_t number = 0; number < plan.ranks()[0].programs.size(); ++number) {
    auto &ofProgram = results.emplace_back();
    int rank = plan.rankOfResults(number);
    const ProgramSpec &program = plan.ranks()[rank].programs[number];
    for (const ResultSpec &result : program.results) {
      std::vector<HostShard> &shards = ofProgram.emplace_back();
      std::set<std::vector<int64_t>> starts;
      for (int64_t device : this->devices)
        if (plan.rankOf(device) == rank &&
            starts
                .insert(
                    shardOf(plan.mesh, result.sharding, result.shape, device)
                        .start)
                .second)
          shards.push_back(
              {device, take(program.buffers[result.buffer].bytes)});
    }
  }
}

uint64_t HostLayout::take(uint64_t bytes) {
  uint64_t offset = total;
  total += padded(bytes);
  return offset;
}

void HostLayout::addInput(uint32_t tensor) {
  const TensorSpec &spec = plan.tensors[tensor];
  Input &input = inputs.emplace_back(Input{&spec, {}, {}});
  std::map<std::vector<int64_t>, uint64_t> places;
  for (int64_t device : devices) {
    int64_t number = plan.ranks()[plan.rankOf(device)].numberOf(tensor);
    if (number < 0)
      continue;
    Shard shard = shardOf(plan.mesh, spec.sharding, spec.shape, device);
    auto [place, isNew] = places.try_emplace(shard.start);
    if (isNew) {
      place->second = take(spec.bytes);
      input.shards.push_back({device, place->second});
    }
    input.offsets[device] = place->second;
    inputOffsets[{device, static_cast<uint32_t>(number)}] = place->second;
  }
}

bool HostLayout::takes(size_t program, size_t input) const {
  return plan.takes(program, inputs[input].tensor - plan.tensors.data());
}

std::optional<uint64_t> HostLayout::offsetOf(size_t input,
                                             int64_t device) const {
  auto place = inputs[input].offsets.find(device);
  if (place == inputs[input].offsets.end())
    return std::nullopt;
  return place->second;
}

void HostLayout::scatter(size_t number, const NamedArrays &arrays,
                         char *batch) const {
  const Input &input = inputs[number];
  const TensorSpec &spec = *input.tensor;
  auto *array = static_cast<const char *>(arrays.find(spec.name)->second.data);
  std::vector<Shard> shards;
  for (const HostShard &shard : input.shards)
    shards.push_back(
        shardOf(plan.mesh, spec.sharding, spec.shape, shard.device));
  // Each thread takes a part of the array's bytes.
  const int64_t all = numElements(spec.shape) * byteSize(spec.dtype);
  constexpr int64_t leastPart = 1 << 20;
  forEachPart(
      all, leastPart, threads, [&](int64_t, int64_t begin, int64_t end) {
        for (size_t i = 0; i < shards.size(); ++i)
          forEachRunWithin(shards[i], spec.dtype, spec.shape, begin, end,
                           [&](int64_t from, int64_t to, int64_t bytes) {
                             copyToMemory(batch + input.shards[i].offset + to,
                                          array + from, bytes);
                           });
        endCopiesToMemory();
      });
}

std::vector<HostArray> HostLayout::gather(size_t program,
                                          const char *batch) const {
  const ProgramSpec &spec =
      plan.ranks()[plan.rankOfResults(program)].programs[program];
  std::vector<HostArray> arrays;
  for (size_t i = 0; i < spec.results.size(); ++i) {
    const ResultSpec &of = spec.results[i];
    HostArray &array =
        arrays.emplace_back(spec.buffers[of.buffer].dtype, of.shape);
    for (const HostShard &shard : results[program][i])
      gatherShard(shardOf(plan.mesh, of.sharding, of.shape, shard.device),
                  array.dtype, array.shape, batch + shard.offset,
                  array.data.data());
  }
  return arrays;
}
