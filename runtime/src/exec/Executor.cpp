//===- Executor.cpp - Code that executors on all devices share ------------===//

#include "shardc-rt/Executor.h"

#include "base/Convert.h"
#include "collectives/BetweenProcesses.h"
#include "exec/CpuExecutor.h"
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
  if (array.ok() && !array->data.empty())
    std::memcpy(out, array->data.data(), array->data.size());
  return array.status();
}

absl::Status Executor::readShards(absl::string_view name,
                                  ReadBytes visit) const {
  absl::StatusOr<HostArray> array = getTensor(name);
  if (array.ok() && !array->data.empty())
    visit(0, reinterpret_cast<const char *>(array->data.data()),
          array->data.size());
  return array.status();
}

absl::Status Executor::writeShards(absl::string_view name, FillBytes fill) {
  const TensorInfo *tensor = plan().findTensor(name);
  HostArray array;
  if (tensor)
    array = HostArray(tensor->dtype, tensor->shape);
  if (absl::Status status = fill(0, reinterpret_cast<char *>(array.data.data()),
                                 array.data.size());
      !status.ok())
    return status;
  return setTensor(name, array.view());
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
  if (!trace)
    return absl::OkStatus();
  return absl::UnimplementedError(
      "a trace of GPUs is not recorded here: nsys shows the NVTX ranges of the "
      "run");
}
