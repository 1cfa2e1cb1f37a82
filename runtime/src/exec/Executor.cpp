//===- Executor.cpp - Code that executors on all devices share ------------===//

#include "shardc-rt/Executor.h"

#include "base/Convert.h"
#include "collectives/BetweenProcesses.h"
#include "exec/Arrays.h"
#include "exec/CpuExecutor.h"
#include "exec/Shards.h"
#include "shardc-rt/Processes.h"

#include "absl/strings/str_cat.h"

#include <cstring>

using namespace shardc::rt;

absl::StatusOr<std::unique_ptr<Executor>>
Executor::create(Context &context, std::shared_ptr<const Plan> plan,
                 ExecutorOptions options) {
  Transport *transport =
      options.processes ? &options.processes->transport() : nullptr;
  std::unique_ptr<Collectives> collectives =
      transport ? createCollectivesBetweenProcesses(*transport)
                : createInProcessCollectives();
  return createCpuExecutor(context, std::move(plan), std::move(options),
                           transport, std::move(collectives));
}

absl::StatusOr<RunResult> Executor::run(absl::string_view program,
                                        const NamedArrays &inputs) {
  if (inFlight() > 0)
    return absl::FailedPreconditionError(
        absl::StrCat("a run of \"", program, "\" while another is in flight"));
  if (absl::Status status = submit(program, inputs); !status.ok())
    return status;
  return await();
}

absl::Status Executor::readTensor(absl::string_view name, void *out) const {
  absl::StatusOr<HostArray> array = getTensor(name);
  if (!array.ok())
    return array.status();
  if (absl::Status status = checkRoom(name, out); !status.ok())
    return status;
  if (!array->data.empty())
    std::memcpy(out, array->data.data(), array->data.size());
  return absl::OkStatus();
}

absl::Status Executor::readShards(absl::string_view name,
                                  ReadBytes visit) const {
  absl::StatusOr<HostArray> array = getTensor(name);
  if (array.ok() && !array->data.empty())
    visit(0, reinterpret_cast<const char *>(array->data.data()),
          array->data.size());
  return array.status();
}

absl::Status Executor::fillShards(absl::string_view name, FillPlaces fill) {
  const TensorInfo *tensor = plan().findTensor(name);
  HostArray array;
  if (tensor)
    array = HostArray(tensor->dtype, tensor->shape);
  std::vector<int64_t> start(array.shape.size());
  if (absl::Status status =
          fill({ShardPlace{{start, array.shape, array.shape},
                           reinterpret_cast<char *>(array.data.data())}});
      !status.ok())
    return status;
  return setTensor(name, array.view());
}

absl::Status Executor::writeShards(absl::string_view name, FillBytes fill) {
  const TensorInfo *tensor = plan().findTensor(name);
  return fillShards(name, [&](absl::Span<const ShardPlace> places) {
    absl::Status status;
    for (const ShardPlace &place : places)
      forEachRun(place.shard, tensor->dtype, tensor->shape,
                 [&](int64_t from, int64_t to, int64_t bytes) {
                   if (status.ok())
                     status = fill(from, place.data + to, bytes);
                 });
    return status;
  });
}

std::vector<RowRange> Executor::rowsOf(absl::string_view name) const {
  const TensorInfo *tensor = plan().findTensor(name);
  return {{0, tensor && !tensor->shape.empty() ? tensor->shape[0]
                                               : plan().batchSize()}};
}

const HostArray *RunResult::find(absl::string_view name) const {
  for (const auto &[key, array] : results)
    if (key == name)
      return &array;
  return nullptr;
}

void RunResult::add(const std::string &name, HostArray array) {
  if (name == "loss" && array.shape.empty())
    if (absl::StatusOr<HostArray> value = convert(array, DType::F64);
        value.ok())
      loss = value->values<double>()[0];
  results.emplace_back(name, std::move(array));
}

absl::Status Executor::setTrace(Trace *trace) {
  return trace ? absl::UnimplementedError("this executor records no traces")
               : absl::OkStatus();
}
