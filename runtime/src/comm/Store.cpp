//===- Store.cpp - Values shared by several processes ---------------------===//

#include "shardc-rt/Store.h"

#include "comm/Socket.h"
#include "comm/StoreServer.h"
#include "shardc-rt/Version.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

Store::Store(const Ranks &ranks, const StoreOptions &options)
    : own(ranks), limits(options) {
  signs[0].activity = "starting";
}

Store::~Store() {
  (void)request(Operation::Leave, "", "", 0,
                std::min(limits.heartbeat, absl::Seconds(5)));
  // The store does not miss a rank that has left.
  {
    std::lock_guard<std::mutex> lock(mutex);
    isLeaving = true;
  }
  changed.notify_all();
  if (heartbeatSocket)
    heartbeatSocket->shutDown();
  for (std::thread *thread : {&sender, &receiver})
    if (thread->joinable())
      thread->join();
}

absl::Status Store::annotate(const absl::Status &status) const {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat("rank ", own.rank, " of ", own.size, ": ",
                                   status.message()));
}

std::string Store::keeper() const {
  return absl::StrCat(
      "rank 0", hostOfKeeper.empty() ? "" : " on " + hostOfKeeper,
      ", which keeps the store at ", own.address, ":", own.port, ",");
}

static absl::Status sendRequest(Socket &socket, StoreRequest head,
                                const std::string &key,
                                const std::string &value, absl::Time end) {
  head.magic = storeMagic;
  head.keyBytes = key.size();
  head.valueBytes = value.size();
  return socket.send(toBytes(head) + key + value, end);
}

/// Receives a reply, of which errors are those of the server. `isBroken`: the
/// connection cannot be used any more.
static absl::StatusOr<std::string> receiveReply(Socket &socket, absl::Time end,
                                                bool &isBroken) {
  isBroken = true;
  absl::StatusOr<std::string> received =
      socket.receive(sizeof(StoreReply), end);
  if (!received.ok())
    return received;
  StoreReply reply;
  std::memcpy(&reply, received->data(), sizeof(reply));
  absl::StatusOr<std::string> bytes = socket.receive(reply.bytes, end);
  if (!bytes.ok())
    return bytes;
  isBroken = false;
  auto code = static_cast<absl::StatusCode>(reply.code);
  if (code != absl::StatusCode::kOk)
    return absl::Status(code, *bytes);
  return bytes;
}

/// Sends a request and receives its reply.
static absl::StatusOr<std::string> ask(Socket &socket, StoreRequest head,
                                       const std::string &key,
                                       const std::string &value, absl::Time end,
                                       bool &isBroken) {
  isBroken = true;
  if (absl::Status s = sendRequest(socket, head, key, value, end); !s.ok())
    return s;
  return receiveReply(socket, end, isBroken);
}

absl::StatusOr<std::string> Store::request(Operation operation,
                                           const std::string &key,
                                           const std::string &value,
                                           uint32_t number,
                                           absl::Duration deadline) {
  std::lock_guard<std::mutex> lock(requests);
  if (!socket)
    return absl::AbortedError(lossOfStore);
  bool isBroken = false;
  absl::StatusOr<std::string> bytes =
      ask(*socket,
          {0, static_cast<uint32_t>(operation), static_cast<uint32_t>(own.rank),
           number, 0, 0},
          key, value, absl::Now() + deadline, isBroken);
  if (!isBroken)
    return bytes;
  // After half an answer its rest could be taken for the next answer.
  socket.reset();
  const bool isLate = absl::IsDeadlineExceeded(bytes.status());
  lossOfStore = absl::StrCat(
      keeper(), isLate ? absl::StrCat(" has not answered for ",
                                      absl::FormatDuration(deadline))
                       : absl::StrCat(" has gone: ", bytes.status().message()));
  return isLate ? absl::DeadlineExceededError(lossOfStore)
                : absl::AbortedError(lossOfStore);
}

absl::StatusOr<std::unique_ptr<Store>>
Store::connect(const Ranks &ranks, const StoreOptions &options) {
  absl::Time end = absl::Now() + options.deadline;
  std::unique_ptr<Store> store(new Store(ranks, options));
  if (ranks.rank == 0) {
    absl::StatusOr<std::unique_ptr<StoreServer>> server =
        StoreServer::start(ranks, options);
    if (!server.ok())
      return store->annotate(server.status());
    store->server = *std::move(server);
  }
  absl::StatusOr<Socket> socket =
      Socket::connect(ranks.address, ranks.port, end);
  if (!socket.ok())
    return store->annotate(
        absl::Status(socket.status().code(),
                     absl::StrCat("waiting for rank 0, which keeps the store: ",
                                  socket.status().message())));
  socket->detectLoss(2 * options.heartbeat);
  store->socket = std::make_unique<Socket>(*std::move(socket));
  absl::StatusOr<std::string> greeted =
      store->request(Operation::Hello, absl::StrCat("shardc ", version()),
                     hostName(), ranks.size, end - absl::Now());
  if (!greeted.ok()) {
    store->socket.reset();
    return store->annotate(greeted.status());
  }
  store->hostOfKeeper = *greeted;
  if (absl::Status s = store->startHeartbeat(end); !s.ok())
    return store->annotate(s);
  absl::StatusOr<std::vector<std::string>> all =
      store->gatherAll("starting", "", options.deadline);
  if (!all.ok())
    return all.status();
  return store;
}

absl::Status Store::startHeartbeat(absl::Time end) {
  absl::StatusOr<Socket> opened = Socket::connect(own.address, own.port, end);
  if (!opened.ok())
    return absl::AbortedError(
        absl::StrCat(keeper(), " has gone: ", opened.status().message()));
  opened->detectLoss(2 * limits.heartbeat);
  heartbeatSocket = std::make_unique<Socket>(*std::move(opened));
  sender = std::thread([this] { sendSigns(); });
  receiver = std::thread([this] { receiveFailure(); });
  return absl::OkStatus();
}

/// A new activity is sent at once, but no more than so many signs in a second:
/// the more processes there are, the fewer of each.
void Store::sendSigns() {
  const auto pause = std::chrono::milliseconds(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(limits.heartbeat / 2), 1, 1000));
  const auto gap =
      std::min(pause, std::chrono::milliseconds(std::max(20, own.size)));
  std::unique_lock<std::mutex> lock(mutex);
  while (!isLeaving) {
    isNew = false;
    std::string text = absl::StrCat(waitsFor);
    for (const Sign &sign : signs)
      absl::StrAppend(&text, "\n", sign.progress, " ", sign.activity);
    lock.unlock();
    absl::Status sent = sendRequest(*heartbeatSocket,
                                    {0, static_cast<uint32_t>(Operation::Sign),
                                     static_cast<uint32_t>(own.rank), 0, 0, 0},
                                    "", text, absl::InfiniteFuture());
    lock.lock();
    // The receiver knows why.
    if (!sent.ok())
      return;
    changed.wait_for(lock, gap, [&] { return isLeaving; });
    isAsleep = true;
    changed.wait_for(lock, pause - gap, [&] { return isLeaving || isNew; });
    isAsleep = false;
  }
}

void Store::receiveFailure() {
  bool isBroken = false;
  absl::Status status =
      receiveReply(*heartbeatSocket, absl::InfiniteFuture(), isBroken).status();
  std::lock_guard<std::mutex> lock(mutex);
  failureOfPeer = isBroken ? absl::AbortedError(absl::StrCat(
                                 keeper(), " has gone: ", status.message()))
                           : status;
}

absl::Status Store::set(const std::string &key, const std::string &value,
                        uint32_t reads) {
  return annotate(
      request(Operation::Set, key, value, reads, limits.deadline).status());
}

absl::StatusOr<std::string> Store::get(const std::string &key,
                                       absl::Duration deadline) {
  int64_t milliseconds = std::clamp<int64_t>(
      absl::ToInt64Milliseconds(deadline), 0, int64_t(1) << 31);
  absl::StatusOr<std::string> value =
      request(Operation::Get, key, "", static_cast<uint32_t>(milliseconds),
              absl::Milliseconds(milliseconds) + limits.heartbeat);
  if (!value.ok())
    return annotate(value.status());
  return value;
}

/// What `rank` sets: waits until `end`, and then as long as it makes progress.
absl::StatusOr<std::string> Store::getFrom(int rank, const std::string &key,
                                           absl::Time end,
                                           absl::Duration deadline) {
  for (;;) {
    setWaitsFor(rank);
    absl::StatusOr<std::string> value = get(key, end - absl::Now());
    setWaitsFor(-1);
    if (!absl::IsDeadlineExceeded(value.status()))
      return value;
    absl::Duration left = deadline - idleTime(rank);
    if (left <= absl::ZeroDuration())
      return value;
    end = absl::Now() + left;
  }
}

absl::StatusOr<std::string> Store::broadcast(const std::string &what,
                                             const std::string &value,
                                             absl::Duration deadline) {
  const std::string key = absl::StrCat(exchanges++, " ", what);
  if (own.rank > 0)
    return getFrom(0, key, absl::Now() + deadline, deadline);
  if (own.size > 1)
    if (absl::Status s = set(key, value, own.size - 1); !s.ok())
      return s;
  return value;
}

absl::StatusOr<std::vector<std::string>>
Store::gatherAll(const std::string &what, const std::string &mine,
                 absl::Duration deadline) {
  absl::Time end = absl::Now() + deadline;
  auto keyOf = [&, number = exchanges++](int rank) {
    return absl::StrCat(number, " ", what, " ", rank);
  };
  std::vector<std::string> all(own.size);
  all[own.rank] = mine;
  if (own.size == 1)
    return all;
  if (absl::Status s = set(keyOf(own.rank), mine, own.size - 1); !s.ok())
    return s;
  auto isConnected = [&] {
    std::lock_guard<std::mutex> lock(requests);
    return socket != nullptr;
  };
  std::vector<int> missing;
  for (int rank = 0; rank < own.size; ++rank) {
    if (rank == own.rank)
      continue;
    absl::StatusOr<std::string> value =
        getFrom(rank, keyOf(rank), end, deadline);
    if (value.ok())
      all[rank] = *std::move(value);
    else if (absl::IsDeadlineExceeded(value.status()) && isConnected())
      missing.push_back(rank);
    else
      return absl::Status(
          value.status().code(),
          absl::StrCat(value.status().message(), " (while ", what, ")"));
  }
  if (missing.empty())
    return all;
  std::string text =
      absl::StrCat(what, ": rank ", absl::StrJoin(missing, ", "), " of ",
                   own.size, missing.size() > 1 ? " are" : " is",
                   " not there after ", absl::FormatDuration(deadline));
  for (int rank : missing)
    absl::StrAppend(&text, "; ", describe(rank));
  return annotate(absl::DeadlineExceededError(text));
}

absl::Status Store::checkPeers() const {
  std::lock_guard<std::mutex> lock(mutex);
  return annotate(failureOfPeer);
}

void Store::fail(const absl::Status &error) {
  // The others have an error already.
  if (error.ok() || !checkPeers().ok())
    return;
  absl::Time end = absl::Now() + std::min(limits.heartbeat, absl::Seconds(5));
  // Another thread may wait on the other connections.
  absl::StatusOr<Socket> opened = Socket::connect(own.address, own.port, end);
  if (!opened.ok())
    return;
  // The others learn which rank it is.
  std::string message(
      absl::StripPrefix(error.message(), absl::StrCat("rank ", own.rank, " of ",
                                                      own.size, ": ")));
  bool isBroken = false;
  (void)ask(*opened,
            {0, static_cast<uint32_t>(Operation::Fail),
             static_cast<uint32_t>(own.rank),
             static_cast<uint32_t>(error.code()), 0, 0},
            "", message, end, isBroken);
}

void Store::setActivity(std::string activity, Track track) {
  // Signs are lines.
  absl::c_replace(activity, '\n', ' ');
  std::lock_guard<std::mutex> lock(mutex);
  Sign &sign = signs[static_cast<int>(track)];
  sign.activity = std::move(activity);
  ++sign.progress;
  isNew = true;
  if (isAsleep)
    changed.notify_all();
}

void Store::noteProgress(Track track) {
  std::lock_guard<std::mutex> lock(mutex);
  ++signs[static_cast<int>(track)].progress;
}

void Store::setWaitsFor(int rank) {
  std::lock_guard<std::mutex> lock(mutex);
  waitsFor = rank;
  waits += rank >= 0;
}

std::optional<std::pair<uint64_t, int>> Store::currentWait() const {
  std::lock_guard<std::mutex> lock(mutex);
  return waitsFor >= 0 ? std::make_optional(std::make_pair(waits, waitsFor))
                       : std::nullopt;
}

/// A lost answer ends the wait for a rank, which may well make progress: it has
/// more time than one that an error only describes.
absl::Duration Store::idleTime(int rank, Track track) {
  absl::StatusOr<std::string> known =
      request(Operation::IdleTime, absl::StrCat(static_cast<int>(track)), "",
              rank, limits.heartbeat);
  int64_t milliseconds;
  return known.ok() && absl::SimpleAtoi(*known, &milliseconds)
             ? absl::Milliseconds(milliseconds)
             : absl::InfiniteDuration();
}

std::string Store::describe(int rank) {
  absl::StatusOr<std::string> known =
      request(Operation::Describe, "", "", rank, limits.heartbeat / 2);
  return known.ok() ? *known : std::string(known.status().message());
}
