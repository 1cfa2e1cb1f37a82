//===- Arrays.cpp - Global arrays and a plan's tensors --------------------===//

#include "exec/Arrays.h"

#include "absl/strings/str_cat.h"

#include <set>

using namespace shardc::rt;

absl::StatusOr<size_t> shardc::rt::findTensor(const PlanSpec &plan,
                                              absl::string_view name) {
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorSpec &tensor = plan.tensors[i];
    if (tensor.name != name)
      continue;
    if (tensor.role == Role::Copy)
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\" is a copy that follows parameter \"",
                       tensor.parameter, "\": set or read that"));
    return i;
  }
  return absl::NotFoundError(
      absl::StrCat("the plan has no tensor \"", name, "\""));
}

absl::StatusOr<size_t> shardc::rt::findPersistent(const PlanSpec &plan,
                                                  absl::string_view name) {
  absl::StatusOr<size_t> index = findTensor(plan, name);
  if (index.ok() && isFed(plan.tensors[*index].role))
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" is an ", toString(plan.tensors[*index].role),
        ", expected a parameter or state"));
  return index;
}

absl::StatusOr<size_t> shardc::rt::findProgram(const PlanSpec &plan,
                                               absl::string_view name) {
  if (name == roundingProgram)
    return absl::InvalidArgumentError(absl::StrCat(
        "the program \"", name, "\" runs by itself where it is needed"));
  absl::Span<const ProgramSpec> programs = plan.ranks()[0].programs;
  for (size_t i = 0; i < programs.size(); ++i)
    if (programs[i].name == name)
      return i;
  return missingProgram(plan, name);
}

template <typename T>
static absl::Status checkLabels(const TensorSpec &tensor, ArrayView array) {
  const T *values = static_cast<const T *>(array.data);
  int64_t count = numElements(array.shape);
  int64_t rows = array.shape.empty() ? 1 : array.shape[0];
  for (int64_t i = 0; i < count; ++i)
    if (values[i] < 0 || values[i] >= tensor.labelClasses)
      return absl::InvalidArgumentError(absl::StrCat(
          toString(tensor.role), " \"", tensor.name, "\" has the value ",
          values[i], " in row ", i / (count / rows), ", expected 0 to ",
          tensor.labelClasses - 1));
  return absl::OkStatus();
}

absl::Status shardc::rt::checkArray(const TensorSpec &tensor, ArrayView array) {
  if (array.dtype != tensor.dtype ||
      array.shape != absl::MakeSpan(tensor.shape))
    return absl::InvalidArgumentError(
        absl::StrCat(toString(tensor.role), " \"", tensor.name, "\" is ",
                     describe(tensor.dtype, tensor.shape), ", got ",
                     describe(array.dtype, array.shape)));
  if (!array.data && numElements(array.shape) > 0)
    return absl::InvalidArgumentError(absl::StrCat(
        toString(tensor.role), " \"", tensor.name, "\" is ",
        describe(tensor.dtype, tensor.shape), ", got a null pointer"));
  if (tensor.labelClasses > 0 && array.dtype == DType::I32)
    return checkLabels<int32_t>(tensor, array);
  if (tensor.labelClasses > 0 && array.dtype == DType::I64)
    return checkLabels<int64_t>(tensor, array);
  return absl::OkStatus();
}

absl::Status shardc::rt::checkRoom(absl::string_view name, const void *out) {
  return out ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   "no room for \"", name, "\": the pointer is null"));
}

absl::Status shardc::rt::checkInputs(const PlanSpec &plan, size_t program,
                                     const NamedArrays &inputs) {
  size_t used = 0;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (!plan.takes(program, i))
      continue;
    const TensorSpec &tensor = plan.tensors[i];
    auto found = inputs.find(tensor.name);
    if (found == inputs.end())
      return absl::InvalidArgumentError(
          absl::StrCat(toString(tensor.role), " \"", tensor.name,
                       "\" is missing: ", describe(tensor.dtype, tensor.shape),
                       " expected"));
    if (absl::Status status = checkArray(tensor, found->second); !status.ok())
      return status;
    ++used;
  }
  if (used != inputs.size())
    for (const auto &[name, array] : inputs) {
      const TensorSpec *tensor = plan.findTensor(name);
      if (!tensor || !isFed(tensor->role))
        return absl::InvalidArgumentError(
            absl::StrCat("the plan has no input \"", name, "\""));
    }
  return absl::OkStatus();
}

std::vector<int64_t> shardc::rt::firstDevices(const Mesh &mesh,
                                              const std::vector<bool> &over) {
  std::vector<int64_t> devices = {0};
  int64_t stride = mesh.numDevices();
  for (size_t axis = 0; axis < over.size(); ++axis) {
    int64_t size = mesh.axes()[axis].size;
    stride /= size;
    if (!over[axis])
      continue;
    std::vector<int64_t> spread;
    for (int64_t device : devices)
      for (int64_t position = 0; position < size; ++position)
        spread.push_back(device + position * stride);
    devices = std::move(spread);
  }
  return devices;
}

std::vector<int64_t> shardc::rt::firstDevices(const Mesh &mesh,
                                              const std::vector<bool> &over,
                                              DeviceRange range) {
  if (range.size() == mesh.numDevices())
    return firstDevices(mesh, over);
  std::vector<int64_t> devices;
  std::set<std::vector<int64_t>> positions;
  for (int64_t device = range.first; device < range.last; ++device) {
    std::vector<int64_t> position;
    for (size_t axis = 0; axis < over.size(); ++axis)
      if (over[axis])
        position.push_back(mesh.coordinate(device, axis));
    if (positions.insert(std::move(position)).second)
      devices.push_back(device);
  }
  return devices;
}

/// By axis, whether it shards a dimension.
static std::vector<bool> shardingAxes(const Mesh &mesh,
                                      const Sharding &sharding) {
  std::vector<bool> over(mesh.axes().size());
  for (const std::vector<int> &axes : sharding.dims)
    for (int axis : axes)
      over[axis] = true;
  return over;
}

std::vector<int64_t> shardc::rt::holdersOf(const Mesh &mesh,
                                           const Sharding &sharding) {
  return firstDevices(mesh, shardingAxes(mesh, sharding));
}

std::vector<int64_t> shardc::rt::holdersOf(const Mesh &mesh,
                                           const Sharding &sharding,
                                           DeviceRange range) {
  return firstDevices(mesh, shardingAxes(mesh, sharding), range);
}
