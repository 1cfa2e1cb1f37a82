//===- PlanHandle.cpp - Plans of the C API --------------------------------===//

#include "capi/PlanHandle.h"

#include "capi/Errors.h"
#include "shardc-rt/HostArray.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;
using namespace shardc::rt::capi;

static_assert(SHARDC_BOOL == static_cast<int>(DType::Bool) &&
              SHARDC_LABEL == static_cast<int>(Role::Label));

static void addNames(const std::vector<std::string> &names,
                     shardc_plan::Axes &axes) {
  for (const std::string &name : names)
    axes.names.push_back(name.c_str());
  axes.numbers.push_back(names.size());
}

shardc_plan::shardc_plan(std::shared_ptr<const Plan> given)
    : plan(std::move(given)) {
  for (const TensorInfo &tensor : plan->tensors()) {
    Axes &axes = tensors.emplace_back();
    for (const std::vector<std::string> &names : tensor.axes)
      addNames(names, axes);
  }
  for (const ProgramInfo &program : plan->programs()) {
    std::vector<Axes> &lists = collectives.emplace_back();
    for (const CollectiveInfo &collective : program.collectives)
      addNames(collective.axes, lists.emplace_back());
  }
}

/// Puts the plan into `out`.
static absl::Status hand(absl::StatusOr<std::shared_ptr<const Plan>> plan,
                         shardc_plan **out) {
  if (!plan.ok())
    return plan.status();
  *out = new shardc_plan(*std::move(plan));
  return absl::OkStatus();
}

shardc_error *shardc_plan_load(const char *path, shardc_plan **plan) {
  return guard([&]() -> absl::Status {
    if (!path || !plan)
      return isNull(path ? "plan" : "path");
    *plan = nullptr;
    return hand(Plan::loadFile(path), plan);
  });
}

shardc_error *shardc_plan_parse(const void *bytes, size_t size,
                                shardc_plan **plan) {
  return guard([&]() -> absl::Status {
    if (!bytes || !plan)
      return isNull(bytes ? "plan" : "bytes");
    *plan = nullptr;
    return hand(
        Plan::parse(std::string(static_cast<const char *>(bytes), size)), plan);
  });
}

void shardc_plan_free(shardc_plan *plan) { delete plan; }

shardc_error *shardc_plan_get_info(const shardc_plan *handle,
                                   shardc_plan_info *info) {
  return guard([&] {
    if (!handle)
      return isNull("plan");
    const Plan &plan = *handle->plan;
    shardc_plan_info value = {};
    value.model = plan.model().c_str();
    value.producer = plan.producer().c_str();
    value.target = plan.target().c_str();
    value.mesh = plan.mesh().c_str();
    value.fingerprint = plan.fingerprint();
    value.num_devices = plan.numDevices();
    value.batch_size = plan.batchSize();
    value.arena_bytes = plan.arenaBytes();
    value.num_axes = plan.axes().size();
    value.num_tensors = plan.tensors().size();
    value.num_programs = plan.programs().size();
    value.is_for_gpu = plan.isForGpu();
    return give(value, info, "info");
  });
}

shardc_error *shardc_plan_get_axis(const shardc_plan *plan, size_t axis,
                                   shardc_axis_info *info) {
  return guard([&] {
    if (!plan)
      return isNull("plan");
    if (axis >= plan->plan->axes().size())
      return isNoNumber("axis", axis, plan->plan->axes().size());
    const AxisInfo &found = plan->plan->axes()[axis];
    shardc_axis_info value = {};
    value.name = found.name.c_str();
    value.size = found.size;
    return give(value, info, "info");
  });
}

shardc_error *shardc_plan_get_tensor(const shardc_plan *plan, size_t tensor,
                                     shardc_tensor_info *info) {
  return guard([&] {
    if (!plan)
      return isNull("plan");
    if (tensor >= plan->tensors.size())
      return isNoNumber("tensor", tensor, plan->tensors.size());
    const TensorInfo &found = plan->plan->tensors()[tensor];
    const shardc_plan::Axes &axes = plan->tensors[tensor];
    shardc_tensor_info value = {};
    value.name = found.name.c_str();
    value.role = static_cast<shardc_role>(found.role);
    value.dtype = static_cast<shardc_dtype>(found.dtype);
    value.shape = found.shape.data();
    value.shard_shape = found.shardShape.data();
    value.num_axes = axes.numbers.data();
    value.axes = axes.names.data();
    value.label_classes = found.labelClasses;
    value.bytes = numElements(found.shape) * byteSize(found.dtype);
    value.num_dims = found.shape.size();
    return give(value, info, "info");
  });
}

shardc_error *shardc_plan_find_tensor(const shardc_plan *plan, const char *name,
                                      shardc_tensor_info *info) {
  size_t number = 0;
  shardc_error *error = guard([&]() -> absl::Status {
    if (!plan || !name)
      return isNull(plan ? "name" : "plan");
    const TensorInfo *tensor = plan->plan->findTensor(name);
    if (!tensor)
      return absl::NotFoundError(
          absl::StrCat("the plan has no tensor \"", name, "\""));
    number = tensor - plan->plan->tensors().data();
    return absl::OkStatus();
  });
  return error ? error : shardc_plan_get_tensor(plan, number, info);
}

shardc_error *shardc_plan_get_program(const shardc_plan *plan, size_t program,
                                      shardc_program_info *info) {
  return guard([&] {
    if (!plan)
      return isNull("plan");
    if (program >= plan->collectives.size())
      return isNoNumber("program", program, plan->collectives.size());
    const ProgramInfo &found = plan->plan->programs()[program];
    shardc_program_info value = {};
    value.name = found.name.c_str();
    value.wire_bytes = found.wireBytes;
    value.matmul_flops = found.matmulFlops;
    value.num_results = found.results.size();
    value.num_collectives = found.collectives.size();
    return give(value, info, "info");
  });
}

shardc_error *shardc_plan_get_collective(const shardc_plan *plan,
                                         size_t program, size_t collective,
                                         shardc_collective_info *info) {
  return guard([&] {
    if (!plan)
      return isNull("plan");
    if (program >= plan->collectives.size())
      return isNoNumber("program", program, plan->collectives.size());
    const std::vector<shardc_plan::Axes> &lists = plan->collectives[program];
    if (collective >= lists.size())
      return isNoNumber("collective", collective, lists.size());
    const CollectiveInfo &found =
        plan->plan->programs()[program].collectives[collective];
    shardc_collective_info value = {};
    value.kind = found.kind.c_str();
    value.part = found.part.c_str();
    value.source = found.source.c_str();
    value.cause = found.cause.c_str();
    value.axes = lists[collective].names.data();
    value.group_size = found.groupSize;
    value.bytes = found.bytes;
    value.wire_bytes = found.wireBytes;
    value.runs = found.runs;
    value.seconds = found.seconds;
    value.num_axes = found.axes.size();
    value.rank = found.rank;
    return give(value, info, "info");
  });
}
