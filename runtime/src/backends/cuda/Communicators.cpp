//===- Communicators.cpp - NCCL between the devices of a mesh -------------===//

#include "backends/cuda/Communicators.h"

#include "backends/cuda/NcclStatus.h"

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;
using namespace shardc::rt::cuda;

absl::StatusOr<std::unique_ptr<Communicators>>
Communicators::create(const Nccl &api, const Mesh &mesh,
                      std::vector<LocalDevice> devices, Store *store,
                      absl::Duration deadline) {
  std::unique_ptr<Communicators> made(
      new Communicators(api, mesh, std::move(devices), store, deadline));
  if (absl::Status s = made->join(); !s.ok()) {
    made->abort();
    return s;
  }
  return made;
}

absl::StatusOr<ncclUniqueId> Communicators::agreeOnId() const {
  ncclUniqueId id = {};
  if (!store || store->ranks().rank == 0)
    if (absl::Status s =
            toStatus(*nccl, nccl->getUniqueId(&id), "ncclGetUniqueId");
        !s.ok())
      return s;
  if (!store)
    return id;
  absl::StatusOr<std::string> bytes =
      store->broadcast("the id of NCCL",
                       std::string(id.internal, sizeof(id.internal)), deadline);
  if (!bytes.ok())
    return bytes.status();
  if (bytes->size() != sizeof(id.internal))
    return absl::InternalError("an id of NCCL of another size");
  std::memcpy(id.internal, bytes->data(), sizeof(id.internal));
  return id;
}

absl::Status Communicators::join() {
  absl::StatusOr<ncclUniqueId> id = agreeOnId();
  if (!id.ok())
    return id.status();
  std::string what = absl::StrCat("joining ", mesh.numDevices(), " devices");
  return inGroup(world, what, [&] {
    for (size_t i = 0; i < local.size(); ++i) {
      if (absl::Status s = local[i].context->makeCurrent(); !s.ok())
        return s;
      ncclConfig_t config;
      if (absl::Status s =
              toStatus(*nccl,
                       nccl->commInitRankConfig(&world[i], mesh.numDevices(),
                                                *id, local[i].number, &config),
                       absl::StrCat("ncclCommInitRankConfig of device ",
                                    local[i].number));
          !s.ok())
        return s;
    }
    return absl::OkStatus();
  });
}

std::string Communicators::nameOf(absl::Span<const int> axes) const {
  return absl::StrJoin(axes, ",", [&](std::string *out, int axis) {
    out->append(mesh.axes()[axis].name);
  });
}

absl::Status Communicators::split(absl::Span<const int> axes,
                                  CommunicatorList &parts) {
  // A group is known by its index over the other axes.
  std::vector<int> others;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      others.push_back(axis);
  auto groupOf = [&](int64_t device) {
    return static_cast<int>(mesh.index(device, others));
  };
  std::string what = absl::StrCat("splitting off groups over ", nameOf(axes));
  parts.resize(local.size());
  if (absl::Status s = inGroup(
          world, what,
          [&] {
            for (size_t i = 0; i < local.size(); ++i) {
              if (absl::Status s = local[i].context->makeCurrent(); !s.ok())
                return s;
              ncclConfig_t config;
              if (absl::Status s = toStatus(
                      *nccl,
                      nccl->commSplit(world[i], groupOf(local[i].number),
                                      mesh.index(local[i].number, axes),
                                      &parts[i], &config),
                      "ncclCommSplit");
                  !s.ok())
                return s;
            }
            return absl::OkStatus();
          });
      !s.ok())
    return s;
  return waitFor(parts, what, deadline);
}

absl::StatusOr<const CommunicatorList *>
Communicators::over(absl::Span<const int> axes) {
  auto [place, isNew] =
      parts.try_emplace(std::vector<int>(axes.begin(), axes.end()));
  if (isNew)
    if (absl::Status s = split(axes, place->second); !s.ok())
      return s;
  return &place->second;
}

absl::Status
Communicators::inGroup(const CommunicatorList &communicators,
                       absl::string_view what,
                       absl::FunctionRef<absl::Status()> calls) const {
  if (absl::Status s = toStatus(*nccl, nccl->groupStart(), "ncclGroupStart");
      !s.ok())
    return s;
  absl::Status called = calls();
  absl::Status ended =
      toStatus(*nccl, nccl->groupEnd(), absl::StrCat(what, ", ncclGroupEnd"));
  if (!called.ok())
    return called;
  if (!ended.ok())
    return ended;
  return waitFor(communicators, what, deadline);
}

absl::Status Communicators::waitFor(const CommunicatorList &communicators,
                                    absl::string_view what,
                                    absl::Duration patience) const {
  constexpr absl::Duration betweenChecks = absl::Milliseconds(100);
  absl::Time start = absl::Now(), checked = start;
  for (ncclComm_t communicator : communicators)
    for (;;) {
      ncclResult_t state = ncclInProgress;
      // A part that is being split off may not be there yet.
      if (communicator)
        if (absl::Status s =
                toStatus(*nccl, nccl->commGetAsyncError(communicator, &state),
                         "ncclCommGetAsyncError");
            !s.ok())
          return s;
      if (state != ncclInProgress) {
        if (absl::Status s = toStatus(*nccl, state, what); !s.ok())
          return s;
        break;
      }
      absl::Time now = absl::Now();
      if (now - start > patience)
        return absl::DeadlineExceededError(
            absl::StrCat("NCCL: ", what, ": not done after ",
                         absl::FormatDuration(now - start)));
      if (store && now - checked > betweenChecks) {
        if (absl::Status s = store->checkPeers(); !s.ok())
          return absl::Status(s.code(),
                              absl::StrCat(s.message(), " (while ", what, ")"));
        checked = now;
      }
      if (now - start > absl::Milliseconds(1))
        absl::SleepFor(absl::Microseconds(100));
    }
  return absl::OkStatus();
}

CommunicatorList Communicators::all() const {
  CommunicatorList list;
  for (const auto &[axes, ofAxes] : parts)
    for (ncclComm_t communicator : ofAxes)
      if (communicator)
        list.push_back(communicator);
  for (ncclComm_t communicator : world)
    if (communicator)
      list.push_back(communicator);
  return list;
}

absl::Status Communicators::checkCommunicators() const {
  auto look = [&](const CommunicatorList &communicators,
                  absl::string_view what) {
    for (ncclComm_t communicator : communicators) {
      ncclResult_t state = ncclSuccess;
      absl::Status s =
          toStatus(*nccl, nccl->commGetAsyncError(communicator, &state),
                   "ncclCommGetAsyncError");
      if (s.ok())
        s = toStatus(*nccl, state, what);
      if (!s.ok())
        return s;
    }
    return absl::OkStatus();
  };
  for (const auto &[axes, communicators] : parts)
    if (absl::Status s = look(communicators,
                              absl::StrCat("a collective over ", nameOf(axes)));
        !s.ok())
      return s;
  return look(world, "communication");
}

absl::Status Communicators::check() const {
  absl::Status status = checkCommunicators();
  if (!store)
    return status;
  absl::Status told = store->checkPeers();
  // The library reports that some rank has gone; soon the store names it.
  for (int i = 0; i < 10 && !status.ok() && told.ok(); ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    told = store->checkPeers();
  }
  if (status.ok() || told.ok())
    return status.ok() ? told : status;
  return absl::Status(
      told.code(), absl::StrCat(told.message(), " (", status.message(), ")"));
}

void Communicators::abort() {
  for (ncclComm_t communicator : all())
    (void)nccl->commAbort(communicator);
  world.clear();
  parts.clear();
}

/// All are asked to end before any is waited for, since those of a group end
/// together.
Communicators::~Communicators() {
  constexpr absl::Duration patience = absl::Seconds(10);
  CommunicatorList list = all();
  bool hasEnded = true;
  for (ncclComm_t communicator : list)
    hasEnded &=
        toStatus(*nccl, nccl->commFinalize(communicator), "ncclCommFinalize")
            .ok();
  hasEnded = hasEnded && waitFor(list, "ending", patience).ok();
  for (ncclComm_t communicator : list)
    (void)(hasEnded ? nccl->commDestroy : nccl->commAbort)(communicator);
}
