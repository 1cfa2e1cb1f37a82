//===- InProcess.cpp - Collectives between virtual devices ----------------===//

#include "collectives/InProcess.h"
#include "shardc-rt/HostArray.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

absl::Status shardc::rt::checkCollective(const Mesh &mesh,
                                         const CollectiveSpec &spec) {
  for (const CollectiveTensor &tensor : spec.tensors) {
    if (tensor.in.size() != static_cast<size_t>(mesh.numDevices()) ||
        tensor.out.size() != tensor.in.size())
      return absl::InvalidArgumentError(
          absl::StrCat("a collective needs the buffers of all ",
                       mesh.numDevices(), " devices"));
    if (tensor.dtype == DType::Bool && spec.reduction == Reduction::Sum &&
        (spec.kind == CollectiveKind::AllReduce ||
         spec.kind == CollectiveKind::ReduceScatter))
      return absl::InvalidArgumentError("booleans cannot be summed");
  }
  if (!spec.sources.empty() &&
      spec.sources.size() != static_cast<size_t>(mesh.numShards(spec.axes)))
    return absl::InvalidArgumentError(
        absl::StrCat("a permute over ", mesh.numShards(spec.axes),
                     " devices has ", spec.sources.size(), " sources"));
  return absl::OkStatus();
}

uint64_t InProcessBase::bytes() const {
  uint64_t sum = 0;
  for (const CollectiveTensor &tensor : spec.tensors) {
    absl::flat_hash_set<const void *> results(tensor.out.begin(),
                                              tensor.out.end());
    sum +=
        results.size() * numElements(tensor.outShape) * byteSize(tensor.dtype);
  }
  return sum;
}

/// To write, and to read, as many takes not much longer than to meet other
/// workers.
static constexpr uint64_t fewBytes = 8 << 10, fewBytesRead = 64 << 10;
static constexpr int64_t fewPieces = 256;

void InProcessBase::listIfFew() {
  if (bytes() > fewBytes)
    return;
  for (const Task &task : tasks) {
    list(task);
    if (listed() > fewPieces)
      break;
  }
  const uint64_t bytesRead = bytesReadByList();
  isListed = listed() <= fewPieces && bytesRead <= fewBytesRead;
  if (!isListed)
    return dropList();
  // Of long pieces there are fewer: what one worker reads alone it holds.
  constexpr int64_t mostOfTask = 32;
  constexpr uint64_t bytesOfTask = 8 << 10;
  piecesOfTask = std::clamp<int64_t>(
      listed() * bytesOfTask / std::max<uint64_t>(bytesRead, 1), 1, mostOfTask);
}

namespace {

class InProcessCollectives : public Collectives {
public:
  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    if (absl::Status status = checkCollective(mesh, spec); !status.ok())
      return status;
    switch (spec.kind) {
    case CollectiveKind::AllReduce:
      return prepareAllReduce(mesh, std::move(spec));
    case CollectiveKind::AllGather:
      return prepareAllGather(mesh, std::move(spec));
    case CollectiveKind::ReduceScatter:
      return prepareReduceScatter(mesh, std::move(spec));
    case CollectiveKind::AllToAll:
      return prepareAllToAll(mesh, std::move(spec));
    case CollectiveKind::CollectivePermute:
      return prepareCollectivePermute(mesh, std::move(spec));
    }
    return absl::InvalidArgumentError("unknown collective");
  }
};

} // namespace

std::unique_ptr<Collectives> shardc::rt::createInProcessCollectives() {
  return std::make_unique<InProcessCollectives>();
}
