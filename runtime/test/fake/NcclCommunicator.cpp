//===- NcclCommunicator.cpp - The fake's communicators --------------------===//
//
// Communicators do not block: a request is executed when the communicator is
// polled for the second time or later. Where a rank has died a communicator
// reports an error, and streams stop until it is aborted; where one does not
// come they stop without an error.
//
//===----------------------------------------------------------------------===//

#include "NcclCommunicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace shardc::rt::test;

/// Whether all ranks have named their part.
bool ncclComm::resolve(const Split &split) {
  const Exchange &exchange = *communication->exchange;
  std::vector<std::pair<int, int>> members; // Key and rank.
  for (int other = 0; other < communication->size; ++other) {
    std::string name = numbered("split", split.number, other), bytes;
    if (!exchange.has(name))
      return false;
    exchange.read(name, other, bytes);
    int colorAndKey[2];
    std::memcpy(colorAndKey, bytes.data(), sizeof(colorAndKey));
    if (colorAndKey[0] == split.color)
      members.push_back({colorAndKey[1], other});
  }
  std::sort(members.begin(), members.end());
  Communication &part = *split.part->communication;
  part.size = members.size();
  part.rank = std::find(members.begin(), members.end(),
                        std::pair(split.key, communication->rank)) -
              members.begin();
  part.exchange = std::make_unique<Exchange>(
      exchange.directory() + "-" + std::to_string(split.number) + "-" +
          std::to_string(split.color),
      part.rank);
  return true;
}

ncclResult_t ncclComm::state() {
  if (communication->error != ncclSuccess)
    return communication->error;
  if (!communication->exchange)
    return ncclInProgress;
  const Exchange &exchange = *communication->exchange;
  const int size = communication->size;
  if (!isComplete)
    for (int other = 0; other < size; ++other)
      if (!exchange.hasCome(other))
        return ncclInProgress;
  isComplete = true;
  while (!splits.empty()) {
    if (!resolve(splits.back()))
      return ncclInProgress;
    splits.pop_back();
  }
  if (ends)
    for (int other = 0; other < size; ++other)
      if (!exchange.has(numbered("end", 0, other)) && exchange.hasCome(other))
        return ncclInProgress;
  if (polls-- > 0)
    return ncclInProgress;
  // The name is taken by this function.
  Fake &told = shardc::rt::test::state();
  return told.ncclBusy > 0 ? (--told.ncclBusy, ncclInProgress) : told.ncclError;
}

namespace {

bool isGood(const ncclConfig_t *config) {
  return config && config->size >= sizeof(ncclConfig_t) &&
         config->magic == 0xcafebeef && config->blocking == 0;
}

ncclResult_t giveCommunicator(ncclComm_t *place,
                              std::unique_ptr<ncclComm> made) {
  *place = made.release();
  ++state().live["communicator"];
  return ncclInProgress;
}

ncclResult_t end(ncclComm_t comm, bool fails) {
  comm->communication->isAborted = true;
  setStuck(comm->communication.get(), false);
  comm->communication->exchange.reset();
  delete comm;
  --state().live["communicator"];
  return fails ? ncclSystemError : ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (enter("ncclGetUniqueId"))
    return ncclSystemError;
  std::string directory = Exchange::makeDirectory();
  *id = {};
  if (directory.empty() || directory.size() >= sizeof(id->internal))
    return ncclSystemError;
  std::strcpy(id->internal, directory.c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *place, int size,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  if (enter("ncclCommInitRankConfig",
            std::to_string(rank) + " of " + std::to_string(size)))
    return ncclSystemError;
  if (!current || !isGood(config) || rank < 0 || rank >= size)
    return ncclInvalidArgument;
  auto made = std::make_unique<ncclComm>();
  made->communication->rank = rank;
  made->communication->size = size;
  made->communication->exchange = std::make_unique<Exchange>(id.internal, rank);
  return giveCommunicator(place, std::move(made));
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *place, ncclConfig_t *config) {
  if (enter("ncclCommSplit",
            "color " + std::to_string(color) + ", key " + std::to_string(key)))
    return ncclSystemError;
  if (comm->context != current || !comm->isComplete || comm->ends)
    return ncclInvalidUsage;
  if (color < 0 || !isGood(config))
    return ncclInvalidArgument;
  int number = comm->splitsSoFar++;
  const int colorAndKey[] = {color, key};
  comm->communication->exchange->leave(
      numbered("split", number, comm->communication->rank),
      std::string(reinterpret_cast<const char *>(colorAndKey),
                  sizeof(colorAndKey)));
  ncclResult_t result = giveCommunicator(place, std::make_unique<ncclComm>());
  comm->splits.push_back({number, *place, color, key});
  comm->polls = 1;
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (enter("ncclCommGetAsyncError"))
    return ncclSystemError;
  *error = comm->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (enter("ncclCommFinalize"))
    return ncclSystemError;
  // It is being split off, and others may never come.
  if (!comm->communication->exchange)
    return ncclInvalidUsage;
  comm->communication->exchange->leave(
      numbered("end", 0, comm->communication->rank), "");
  comm->ends = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  bool fails = enter("ncclCommDestroy");
  return comm->ends ? end(comm, fails) : ncclInvalidUsage;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end(comm, enter("ncclCommAbort"));
}

} // extern "C"
