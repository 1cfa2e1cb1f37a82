//===- Store.cpp - Values shared by several processes ---------------------===//

#include "shardc-rt/Store.h"

#include "comm/StoreServer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

Store::Store(const Ranks &ranks) : own(ranks) {}

Store::~Store() {
  (void)request(Operation::Leave, "", "", 0, absl::Seconds(5));
}

absl::Status Store::annotate(const absl::Status &status) const {
  if (status.ok())
    return status;
  return absl::Status(status.code(),
                      absl::StrCat("rank ", own.rank, " of ", own.size, ": ",
                                   status.message()));
}

absl::StatusOr<std::string> Store::request(Operation operation,
                                           const std::string &key,
                                           const std::string &value,
                                           uint32_t number,
                                           absl::Duration deadline) {
  absl::Time end = absl::Now() + deadline;
  std::lock_guard<std::mutex> lock(mutex);
  if (!socket)
    return absl::AbortedError("the store has gone");
  StoreRequest head{storeMagic,
                    static_cast<uint32_t>(operation),
                    static_cast<uint32_t>(own.rank),
                    number,
                    key.size(),
                    value.size()};
  absl::Status status = socket->send(toBytes(head) + key + value, end);
  StoreReply reply{};
  if (status.ok()) {
    absl::StatusOr<std::string> received =
        socket->receive(sizeof(StoreReply), end);
    status = received.status();
    if (received.ok())
      std::memcpy(&reply, received->data(), sizeof(reply));
  }
  absl::StatusOr<std::string> bytes = std::string();
  if (status.ok()) {
    bytes = socket->receive(reply.bytes, end);
    status = bytes.status();
  }
  // After half an answer its rest could be taken for the next answer.
  if (!status.ok()) {
    socket.reset();
    return absl::AbortedError(absl::StrCat("rank 0, which keeps the store at ",
                                           own.address, ":", own.port,
                                           ", has gone: ", status.message()));
  }
  auto code = static_cast<absl::StatusCode>(reply.code);
  if (code != absl::StatusCode::kOk)
    return absl::Status(code, *bytes);
  return bytes;
}

absl::StatusOr<std::unique_ptr<Store>> Store::connect(const Ranks &ranks,
                                                      absl::Duration deadline) {
  absl::Time end = absl::Now() + deadline;
  std::unique_ptr<Store> store(new Store(ranks));
  if (ranks.rank == 0) {
    absl::StatusOr<std::unique_ptr<StoreServer>> server =
        StoreServer::start(ranks);
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
  store->socket = std::make_unique<Socket>(*std::move(socket));
  absl::StatusOr<std::string> greeted =
      store->request(Operation::Hello, "", "", ranks.size, end - absl::Now());
  if (!greeted.ok()) {
    store->socket.reset();
    return store->annotate(greeted.status());
  }
  absl::StatusOr<std::vector<std::string>> all =
      store->gatherAll("starting", "", deadline);
  if (!all.ok())
    return all.status();
  return store;
}

absl::Status Store::set(const std::string &key, const std::string &value,
                        uint32_t reads) {
  return annotate(
      request(Operation::Set, key, value, reads, absl::Minutes(1)).status());
}

absl::StatusOr<std::string> Store::get(const std::string &key,
                                       absl::Duration deadline) {
  int64_t milliseconds = std::clamp<int64_t>(
      absl::ToInt64Milliseconds(deadline), 0, int64_t(1) << 31);
  absl::StatusOr<std::string> value =
      request(Operation::Get, key, "", static_cast<uint32_t>(milliseconds),
              absl::Milliseconds(milliseconds) + absl::Minutes(1));
  if (!value.ok())
    return annotate(value.status());
  return value;
}

absl::StatusOr<std::string> Store::broadcast(const std::string &what,
                                             const std::string &value,
                                             absl::Duration deadline) {
  const std::string key = absl::StrCat(exchanges++, " ", what);
  if (own.rank > 0)
    return get(key, deadline);
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
  std::vector<int> missing;
  for (int rank = 0; rank < own.size; ++rank) {
    if (rank == own.rank)
      continue;
    absl::StatusOr<std::string> value = get(keyOf(rank), end - absl::Now());
    if (value.ok())
      all[rank] = *std::move(value);
    else if (value.status().code() == absl::StatusCode::kDeadlineExceeded)
      missing.push_back(rank);
    else
      return absl::Status(
          value.status().code(),
          absl::StrCat(value.status().message(), " (while ", what, ")"));
  }
  if (!missing.empty())
    return annotate(absl::DeadlineExceededError(
        absl::StrCat(what, ": rank ", absl::StrJoin(missing, ", "), " of ",
                     own.size, missing.size() > 1 ? " are" : " is",
                     " not there after ", absl::FormatDuration(deadline))));
  return all;
}

absl::Status Store::checkPeers() {
  return annotate(
      request(Operation::Check, "", "", 0, absl::Minutes(1)).status());
}

void Store::fail(absl::string_view message) {
  (void)request(Operation::Fail, "", std::string(message), 0, absl::Seconds(5));
}
