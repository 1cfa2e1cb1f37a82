//===- StoreServer.cpp - Values by key, kept by rank 0 --------------------===//

#include "comm/StoreServer.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

absl::StatusOr<std::unique_ptr<StoreServer>>
StoreServer::start(const Ranks &ranks) {
  absl::StatusOr<Socket> socket = Socket::listen(ranks.address, ranks.port);
  if (!socket.ok())
    return socket.status();
  std::unique_ptr<StoreServer> server(
      new StoreServer(ranks, *std::move(socket)));
  server->isHere.resize(ranks.size);
  server->hasLeft.resize(ranks.size);
  server->acceptor =
      std::thread([server = server.get()] { server->acceptAll(); });
  return server;
}

StoreServer::~StoreServer() {
  // The others may still have to read a value, and learn of a failure soon.
  constexpr auto patience = std::chrono::seconds(10);
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, patience, [&] {
      for (int rank = 1; rank < ranks.size; ++rank)
        if (isHere[rank] && !hasLeft[rank])
          return false;
      return true;
    });
    ends = true;
    for (Client &client : clients)
      client.socket.shutDown();
    changed.notify_all();
  }
  listener.shutDown();
  acceptor.join();
  for (Client &client : clients)
    client.thread.join();
}

void StoreServer::acceptAll() {
  for (;;) {
    absl::StatusOr<Socket> next = listener.accept();
    std::lock_guard<std::mutex> lock(mutex);
    if (!next.ok() || ends)
      return;
    Client &client = clients.emplace_back();
    client.socket = *std::move(next);
    client.thread = std::thread([this, &client] { serve(client.socket); });
  }
}

void StoreServer::noteFailure(int rank, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failure.empty()) {
    toldBy = rank;
    failure = message;
  }
  changed.notify_all();
}

absl::Status StoreServer::failureOf(int rank) const {
  return failure.empty() || toldBy == rank ? absl::OkStatus()
                                           : absl::AbortedError(failure);
}

void StoreServer::serve(Socket &socket) {
  constexpr absl::Time never = absl::InfiniteFuture();
  int rank = -1;
  for (;;) {
    absl::StatusOr<std::string> head =
        socket.receive(sizeof(StoreRequest), never);
    StoreRequest request;
    if (!head.ok())
      break;
    std::memcpy(&request, head->data(), sizeof(request));
    if (request.magic != storeMagic || request.keyBytes > 4096)
      break;
    absl::StatusOr<std::string> key = socket.receive(request.keyBytes, never);
    absl::StatusOr<std::string> value =
        key.ok() ? socket.receive(request.valueBytes, never) : key;
    if (!value.ok())
      break;
    absl::StatusOr<std::string> result =
        answer(request, *std::move(key), *std::move(value), rank);
    const absl::Status status = result.status();
    const std::string bytes =
        status.ok() ? *std::move(result) : std::string(status.message());
    StoreReply reply{static_cast<uint32_t>(status.code()), 0, bytes.size()};
    bool isSent = socket.send(toBytes(reply) + bytes, never).ok();
    // Nobody needs to wait for ranks that will not come. A waiting rank may end
    // the server when it learns of this, so the others are told before.
    bool isHello = static_cast<Store::Operation>(request.operation) ==
                   Store::Operation::Hello;
    if (isHello && !status.ok())
      noteFailure(-1, bytes);
    if (!isSent)
      break;
  }
  socket.shutDown();
  if (rank < 0)
    return;
  bool isMissed = false;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isMissed = !hasLeft[rank] && !ends;
    hasLeft[rank] = true;
    changed.notify_all();
  }
  if (isMissed)
    noteFailure(rank, absl::StrCat("rank ", rank,
                                   " has gone: its connection was closed"));
}

absl::StatusOr<std::string> StoreServer::hello(const StoreRequest &request,
                                               int &rank) {
  std::lock_guard<std::mutex> lock(mutex);
  if (request.number != static_cast<uint32_t>(ranks.size) ||
      request.rank >= isHere.size())
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", request.rank, " is told that there are ", request.number,
        " processes, and rank 0 that there are ", ranks.size));
  if (isHere[request.rank])
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.rank, " is also another process"));
  rank = request.rank;
  isHere[rank] = true;
  return std::string();
}

absl::StatusOr<std::string>
StoreServer::get(const std::string &key, absl::Duration patience, int rank) {
  std::unique_lock<std::mutex> lock(mutex);
  auto isOver = [&] {
    return ends || !failureOf(rank).ok() || entries.count(key) > 0;
  };
  changed.wait_for(lock, absl::ToChronoMilliseconds(patience), isOver);
  auto found = entries.find(key);
  // A value that is there takes precedence over a later failure of another
  // rank.
  if (found == entries.end()) {
    if (absl::Status s = failureOf(rank); !s.ok())
      return s;
    return absl::DeadlineExceededError(
        absl::StrCat("nobody has set \"", key, "\""));
  }
  if (found->second.readsLeft == 1) {
    std::string value = std::move(found->second.value);
    entries.erase(found);
    return value;
  }
  found->second.readsLeft -= found->second.readsLeft > 0;
  return found->second.value;
}

absl::StatusOr<std::string> StoreServer::answer(const StoreRequest &request,
                                                std::string key,
                                                std::string value, int &rank) {
  auto operation = static_cast<Store::Operation>(request.operation);
  if (operation == Store::Operation::Hello)
    return hello(request, rank);
  if (rank < 0)
    return absl::InvalidArgumentError("a request before a greeting");
  switch (operation) {
  case Store::Operation::Set: {
    std::lock_guard<std::mutex> lock(mutex);
    if (!entries.emplace(key, Entry{std::move(value), request.number}).second)
      return absl::FailedPreconditionError(
          absl::StrCat("\"", key, "\" is set already"));
    changed.notify_all();
    return std::string();
  }
  case Store::Operation::Get:
    return get(key, absl::Milliseconds(request.number), rank);
  case Store::Operation::Check: {
    std::lock_guard<std::mutex> lock(mutex);
    if (absl::Status s = failureOf(rank); !s.ok())
      return s;
    return std::string();
  }
  case Store::Operation::Fail:
    noteFailure(rank, absl::StrCat("rank ", rank, " failed: ", value));
    return std::string();
  case Store::Operation::Leave: {
    std::lock_guard<std::mutex> lock(mutex);
    hasLeft[rank] = true;
    changed.notify_all();
    return std::string();
  }
  default:
    return absl::InvalidArgumentError("an unknown request");
  }
}
