//===- RunResult.cpp - What one run of a program gave ---------------------===//

#include "base/Convert.h"
#include "shardc-rt/Executor.h"

using namespace shardc::rt;

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
