//===- StoreServer.cpp - Values by key, kept by rank 0 --------------------===//

#include "comm/StoreServer.h"

#include "comm/Socket.h"
#include "shardc-rt/Version.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

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

std::string StoreServer::describeAlone(int rank) const {
  const Member &member = members[rank];
  if (!member.isHere)
    return absl::StrCat(nameOf(rank), " has not come");
  if (member.hasLeft)
    return absl::StrCat(nameOf(rank), " has left");
  auto silence = absl::FromChrono(Clock::now() - member.lastSign);
  std::string text =
      absl::StrCat(nameOf(rank), " was last in ", member.tracks[0].activity);
  if (const std::string &other = member.tracks[1].activity; !other.empty())
    absl::StrAppend(&text, ", beside that in ", other);
  if (silence > options.heartbeat)
    absl::StrAppend(
        &text, " and has given no sign for ",
        absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(100))),
        ": it is stopped, or its host is overloaded");
  else if (member.waitsFor >= 0)
    absl::StrAppend(&text, ", waiting for rank ", member.waitsFor);
  return text;
}

std::string StoreServer::describe(int rank) const {
  std::vector<bool> isNamed(members.size());
  std::string text;
  for (int at = rank; at >= 0 && !isNamed[at]; at = members[at].waitsFor) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", describeAlone(at));
    isNamed[at] = true;
  }
  return text;
}

absl::StatusOr<std::string>
StoreServer::idleTime(int rank, const std::string &track) const {
  const Member &member = members[rank];
  if (!member.isHere || member.hasLeft)
    return absl::NotFoundError(describeAlone(rank));
  auto idle = Clock::now() - member.tracks[track == "1"].since;
  return absl::StrCat(
      std::chrono::duration_cast<std::chrono::milliseconds>(idle).count());
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
  tellFailure();
}

void StoreServer::tellFailure() {
  for (int rank = 0; rank < ranks.size; ++rank) {
    Member &member = members[rank];
    const absl::Status error = failureOf(rank);
    if (!member.signs || member.isTold || error.ok())
      continue;
    member.isTold = true;
    StoreReply reply{static_cast<uint32_t>(error.code()), 0,
                     error.message().size()};
    // So few bytes fit into what a connection keeps for its receiver.
    (void)member.signs->send(toBytes(reply) + std::string(error.message()),
                             absl::Now() + options.heartbeat);
  }
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
    if (static_cast<Store::Operation>(request.operation) ==
        Store::Operation::Sign) {
      if (!takeSign(request, *value, socket, rank))
        break;
      continue;
    }
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
    if (member.signs == &socket)
      member.signs = nullptr;
    if (!member.hasLeft && !ends)
      missed = absl::AbortedError(
          absl::StrCat(nameOf(rank),
                       " has gone: its connection was closed; it "
                       "was last in ",
                       member.tracks[0].activity));
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
  member.lastSign = Clock::now();
  for (Doing &doing : member.tracks)
    doing.since = member.lastSign;
  member.tracks[0].activity = "starting";
  return hostName();
}

bool StoreServer::takeSign(const StoreRequest &request, const std::string &text,
                           Socket &socket, int &rank) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::lock_guard<std::mutex> lock(mutex);
  if (request.rank >= members.size() || !members[request.rank].isHere)
    return false;
  Member &member = members[request.rank];
  if (lines.size() != 1 + member.tracks.size() ||
      !absl::SimpleAtoi(lines[0], &member.waitsFor) ||
      member.waitsFor >= ranks.size)
    return false;
  rank = static_cast<int>(request.rank);
  member.signs = &socket;
  member.lastSign = Clock::now();
  for (size_t i = 0; i < member.tracks.size(); ++i) {
    std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(lines[1 + i], absl::MaxSplits(' ', 1));
    Doing &doing = member.tracks[i];
    uint64_t progress;
    if (!absl::SimpleAtoi(words.first, &progress))
      return false;
    if (progress != doing.progress)
      doing.since = member.lastSign;
    doing.progress = progress;
    doing.activity = std::string(words.second);
  }
  tellFailure();
  return true;
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
  // On a connection of its own.
  if (operation == Store::Operation::Fail) {
    std::lock_guard<std::mutex> lock(mutex);
    if (request.rank >= members.size() || !members[request.rank].isHere)
      return absl::InvalidArgumentError("a request before a greeting");
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
  case Store::Operation::IdleTime:
  case Store::Operation::Describe: {
    std::lock_guard<std::mutex> lock(mutex);
    if (request.number >= members.size())
      return absl::InvalidArgumentError("no such rank");
    int of = static_cast<int>(request.number);
    return operation == Store::Operation::IdleTime ? idleTime(of, key)
                                                   : describe(of);
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
