//===- Parameters.cpp - Parameters from and to archives -------------------===//

#include "shardc-rt/Trainer.h"

#include "base/Convert.h"
#include "checkpoint/Safetensors.h"
#include "data/Npz.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

absl::Status shardc::rt::loadParameters(Executor &executor,
                                        const std::string &path) {
  absl::StatusOr<ArrayMap> arrays =
      isSafetensorsPath(path) ? readSafetensors(path) : readNpz(path);
  if (!arrays.ok())
    return arrays.status();
  for (const auto &[name, array] : *arrays) {
    const TensorInfo *tensor = executor.plan().findTensor(name);
    if (!tensor || tensor->role != Role::Parameter)
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the model has no parameter \"", name, "\""));
  }
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    if (tensor.role != Role::Parameter)
      continue;
    auto found = arrays->find(tensor.name);
    if (found == arrays->end())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": parameter \"", tensor.name, "\" is missing; ",
                       describe(tensor.dtype, tensor.shape), " expected"));
    absl::StatusOr<HostArray> array = found->second;
    if (isFloat(array->dtype) && isFloat(tensor.dtype))
      array = convert(found->second, tensor.dtype);
    if (!array.ok())
      return absl::InvalidArgumentError(absl::StrCat(path, ": parameter \"",
                                                     tensor.name, "\", ",
                                                     array.status().message()));
    if (absl::Status status = executor.setTensor(tensor.name, array->view());
        !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat(path, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrayMap> shardc::rt::readParameters(const Executor &executor) {
  ArrayMap arrays;
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    if (tensor.role != Role::Parameter)
      continue;
    absl::StatusOr<HostArray> array = executor.getTensor(tensor.name);
    // NumPy has no bf16; f32 holds it exactly. Both kinds of files are alike.
    if (array.ok() && array->dtype == DType::BF16)
      array = convert(*array, DType::F32);
    if (!array.ok())
      return array.status();
    arrays.emplace(tensor.name, *std::move(array));
  }
  return arrays;
}

absl::Status shardc::rt::writeArrays(const std::string &path,
                                     const ArrayMap &arrays) {
  return isSafetensorsPath(path) ? writeSafetensors(path, arrays)
                                 : writeNpz(path, arrays);
}

absl::Status shardc::rt::saveParameters(const Executor &executor,
                                        const std::string &path) {
  absl::StatusOr<ArrayMap> arrays = readParameters(executor);
  return arrays.ok() ? writeArrays(path, *arrays) : arrays.status();
}
