//===- MeasureCollectives.cpp - Times of collectives ----------------------===//

#include "MeasureCollectives.h"

#include "absl/strings/str_cat.h"

#include <cmath>

using namespace shardc::run;
using namespace shardc::rt;

CollectiveSpec shardc::run::makeCollective(CollectiveKind kind, int axis,
                                           int64_t members, int64_t bytes) {
  // An all-reduce sends both ways.
  double share = double(members - 1) / double(members) *
                 (kind == CollectiveKind::AllReduce ? 2 : 1);
  if (kind == CollectiveKind::CollectivePermute)
    share = 1;
  int64_t part = std::max<int64_t>(
      1,
      std::llround(double(bytes) / (share * sizeof(float) * double(members))));
  CollectiveTensor tensor;
  tensor.dtype = DType::F32;
  tensor.inShape = tensor.outShape = {members, part};
  if (kind == CollectiveKind::AllGather)
    tensor.inShape[0] = 1;
  if (kind == CollectiveKind::ReduceScatter)
    tensor.outShape[0] = 1;
  if (kind == CollectiveKind::AllToAll) {
    tensor.splitDim = 0;
    tensor.dim = 1;
    tensor.outShape = {1, members * part};
  }
  CollectiveSpec spec;
  spec.kind = kind;
  spec.axes = {axis};
  if (kind == CollectiveKind::CollectivePermute) {
    spec.targetAxes = {axis};
    for (int64_t member = 0; member < members; ++member)
      spec.sources.push_back(int((member + 1) % members));
  }
  spec.tensors = {tensor};
  return spec;
}

TimesByBytes shardc::run::withoutDisturbances(TimesByBytes times) {
  double least = 1e300;
  for (auto time = times.rbegin(); time != times.rend(); ++time)
    least = time->second = std::min(least, time->second);
  return times;
}

std::string Group::name() const {
  return apart == 1 ? absl::StrCat("devices=", devices)
                    : absl::StrCat("devices=", devices, ",apart=", apart);
}

std::vector<Group> shardc::run::listGroups(int64_t all) {
  std::vector<Group> groups;
  for (int64_t devices = 2; devices <= all; ++devices)
    if (all % devices == 0) {
      groups.push_back({devices, 1});
      if (devices < all)
        groups.push_back({devices, all / devices});
    }
  return groups;
}

Mesh shardc::run::meshOf(Group group, int64_t all) {
  return Mesh({{"outer", all / (group.devices * group.apart)},
               {"group", group.devices},
               {"inner", group.apart}});
}

void shardc::run::writeCollectives(const TimesByGroup &times, Group all,
                                   Json &json) {
  const TimesByBytes &reduce = times.at("all_reduce").at(all.name());
  const double steps = 2 * std::ceil(std::log2(double(all.devices)));
  json["default_link"] = {
      {"bytes_per_second",
       rounded(double(reduce.rbegin()->first) / reduce.rbegin()->second)},
      {"latency_seconds", rounded(reduce.begin()->second / steps)}};
  for (auto [kind, name] : collectiveKinds)
    for (const auto &[group, ofGroup] : times.at(name))
      for (auto [sent, time] : withoutDisturbances(ofGroup))
        json["collectives"][name][group][std::to_string(sent)] = rounded(time);
}

absl::Status CollectiveRun::takeFailure() {
  std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

void CollectiveRun::runPart(PreparedCollective &part, int worker) {
  for (int64_t task = worker; task < part.numTasks() && !hasFailed;
       task += pool.size())
    if (absl::Status status = part.runTask(task); !status.ok()) {
      std::lock_guard<std::mutex> lock(mutex);
      failure.Update(status);
      hasFailed = true;
    }
}
