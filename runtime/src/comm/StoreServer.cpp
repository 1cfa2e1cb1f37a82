//===- StoreServer.cpp - Values by key, kept by rank 0 --------------------===//

#include "comm/StoreServer.h"

#include "comm/Socket.h"
#include "shardc-rt/Version.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

absl::StatusOr<std::unique_ptr<StoreServer>>
StoreServer::start(const Ranks &ranks, const StoreOptions &options) {
  absl::StatusOr<Socket> socket = Socket::listen(ranks.address, ranks.port);
  if (!socket.ok())
    return socket.status();
  std::unique_ptr<StoreServer> server(
      new StoreServer(ranks, options, *std::move(socket)));
  server->acceptor =
      std::thread([server = server.get()] { server->acceptAll(); });
  return server;
}

StoreServer::~StoreServer() {
  // The others may still have to read a value, and learn of a failure soon.
  {
    std::unique_lock<std::mutex> lock(mutex);
    absl::Duration patience = absl::Seconds(10);
    if (!failure.ok())
      patience = std::min(patience, options.heartbeat);
    changed.wait_for(lock, absl::ToChronoMilliseconds(patience), [&] {
      for (int rank = 1; rank < ranks.size; ++rank)
        if (members[rank].isHere && !members[rank].hasLeft)
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
    client.socket.detectLoss(2 * options.heartbeat);
    client.thread = std::thread([this, &client] { serve(client.socket); });
  }
}

std::string StoreServer::nameOf(int rank) const {
  return absl::StrCat("rank ", rank,
                      members[rank].isHere ? " on " + members[rank].host : "");
}

std::string StoreServer::describe(int rank) const {
  const Member &member = members[rank];
  if (!member.isHere)
    return absl::StrCat(nameOf(rank), " has not come");
  if (member.hasLeft)
    return absl::StrCat(nameOf(rank), " has left");
  auto silence = absl::FromChrono(Clock::now() - member.lastSign);
  std::string text =
      absl::StrCat(nameOf(rank), " was last in ", member.activity);
  if (silence > options.heartbeat)
    absl::StrAppend(
        &text, " and has given no sign for ",
        absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(100))),
        ": it is stopped, or its host is overloaded");
  return text;
}

absl::Status StoreServer::failureToldBy(const StoreRequest &request,
                                        const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex);
  auto code = static_cast<absl::StatusCode>(request.number);
  // Those who wait must not take it for the end of their own wait.
  if (code == absl::StatusCode::kDeadlineExceeded)
    code = absl::StatusCode::kAborted;
  return absl::Status(code,
                      absl::StrCat(nameOf(request.rank), " failed: ", message));
}

void StoreServer::noteFailure(int rank, const absl::Status &error) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failure.ok()) {
    toldBy = rank;
    failure = error;
  }
  changed.notify_all();
}

absl::Status StoreServer::failureOf(int rank) const {
  return toldBy == rank ? absl::OkStatus() : failure;
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
      noteFailure(-1, status);
    if (!isSent)
      break;
  }
  socket.shutDown();
  if (rank < 0)
    return;
  absl::Status missed;
  {
    std::lock_guard<std::mutex> lock(mutex);
    Member &member = members[rank];
    if (!member.hasLeft && !ends)
      missed = absl::AbortedError(
          absl::StrCat(nameOf(rank),
                       " has gone: its connection was closed; it "
                       "was last in ",
                       member.activity));
    member.hasLeft = true;
    changed.notify_all();
  }
  if (!missed.ok())
    noteFailure(rank, missed);
}

absl::StatusOr<std::string> StoreServer::hello(const StoreRequest &request,
                                               const std::string &program,
                                               std::string host, int &rank) {
  std::lock_guard<std::mutex> lock(mutex);
  if (request.number != static_cast<uint32_t>(ranks.size) ||
      request.rank >= members.size())
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", request.rank, " is told that there are ", request.number,
        " processes, and rank 0 that there are ", ranks.size));
  if (std::string own = absl::StrCat("shardc ", version()); program != own)
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.rank, " on ", host, " is of ", program,
                     ", and rank 0 of ", own));
  Member &member = members[request.rank];
  if (member.isHere)
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", request.rank, " is also another process"));
  rank = static_cast<int>(request.rank);
  member.isHere = true;
  member.host = std::move(host);
  member.activity = "starting";
  member.lastSign = Clock::now();
  return hostName();
}

absl::StatusOr<std::string>
StoreServer::beat(std::string activity, absl::Duration patience, int rank) {
  std::unique_lock<std::mutex> lock(mutex);
  members[rank].activity = std::move(activity);
  members[rank].lastSign = Clock::now();
  changed.wait_for(lock, absl::ToChronoMilliseconds(patience),
                   [&] { return ends || !failureOf(rank).ok(); });
  if (absl::Status s = failureOf(rank); !s.ok())
    return s;
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
    return hello(request, key, std::move(value), rank);
  // On connections of their own.
  if (operation == Store::Operation::Fail ||
      operation == Store::Operation::Beat) {
    std::lock_guard<std::mutex> lock(mutex);
    if (request.rank >= members.size() || !members[request.rank].isHere)
      return absl::InvalidArgumentError("a request before a greeting");
    if (operation == Store::Operation::Beat)
      rank = static_cast<int>(request.rank);
  } else if (rank < 0)
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
  case Store::Operation::Beat:
    return beat(std::move(value), absl::Milliseconds(request.number), rank);
  case Store::Operation::Describe: {
    std::lock_guard<std::mutex> lock(mutex);
    if (request.number >= members.size())
      return absl::InvalidArgumentError("no such rank");
    return describe(static_cast<int>(request.number));
  }
  case Store::Operation::Fail:
    noteFailure(request.rank, failureToldBy(request, value));
    return std::string();
  case Store::Operation::Leave: {
    std::lock_guard<std::mutex> lock(mutex);
    members[rank].hasLeft = true;
    changed.notify_all();
    return std::string();
  }
  default:
    return absl::InvalidArgumentError("an unknown request");
  }
}
