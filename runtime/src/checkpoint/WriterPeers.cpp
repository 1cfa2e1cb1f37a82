//===- WriterPeers.cpp - Writers of one checkpoint ------------------------===//

#include "checkpoint/WriterPeers.h"

#include "base/ReadFile.h"
#include "comm/Socket.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <sys/stat.h>

using namespace shardc::rt;

std::string shardc::rt::formatStatus(const absl::Status &status) {
  return absl::StrCat(static_cast<int>(status.code()), " ", status.message());
}

absl::Status shardc::rt::parseStatus(absl::string_view text) {
  size_t space = text.find(' ');
  int code;
  if (space == text.npos || !absl::SimpleAtoi(text.substr(0, space), &code))
    return absl::InternalError("another process sent no status");
  return absl::Status(static_cast<absl::StatusCode>(code),
                      text.substr(space + 1));
}

absl::Status WriterPeers::begin(const std::string &ownName) {
  name = ownName;
  if (!store)
    return absl::OkStatus();
  absl::StatusOr<std::string> agreed =
      store->broadcast("beginning to write", ownName, deadline);
  if (agreed.ok())
    name = *std::move(agreed);
  return agreed.status();
}

/// What all processes have in common that run on one system and see one file
/// system there; empty: that is not known.
static std::string fileSystemOf(const std::string &folder) {
  absl::StatusOr<std::string> boot =
      readFile("/proc/sys/kernel/random/boot_id");
  struct stat status;
  if (!boot.ok() || boot->empty() || stat(folder.c_str(), &status) != 0)
    return "";
  return absl::StrCat(*boot, " ", status.st_dev);
}

absl::Status WriterPeers::compareFileSystems(const std::string &folder) {
  const std::string mine = fileSystemOf(folder);
  haveSamePages = !mine.empty();
  if (!store)
    return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> all =
      store->gatherAll("beginning to write", mine, deadline);
  if (!all.ok())
    return all.status();
  for (const std::string &other : *all)
    haveSamePages &= other == mine;
  return absl::OkStatus();
}

std::string WriterPeers::keyOf(const char *what, int rank) const {
  return absl::StrCat(name, " ", exchanges, " ", what, " ", rank);
}

/// Asks again and again, since the main thread uses the store in between.
absl::StatusOr<std::string> WriterPeers::wait(int rank, const std::string &key,
                                              absl::Duration patience) {
  // Those who wait for this process have to know of progress before they give
  // up.
  const absl::Duration pause = patience / 8;
  absl::Time lastProgress = absl::Now(), look = lastProgress + pause;
  for (;;) {
    absl::StatusOr<std::string> value = store->get(key, absl::Milliseconds(20));
    if (!absl::IsDeadlineExceeded(value.status()))
      return value;
    const absl::Time now = absl::Now();
    if (now >= look) {
      absl::Time last = now - store->idleTime(rank, Track::Checkpoint);
      if (last > lastProgress) {
        lastProgress = last;
        progress.note();
      }
      look = now + pause;
    }
    if (now - lastProgress >= patience)
      return value;
    absl::SleepFor(absl::Milliseconds(1));
  }
}

absl::Status WriterPeers::fromFirst(const char *what,
                                    const absl::Status &status) {
  if (size() == 1)
    return status;
  const std::string key = keyOf(what, 0);
  ++exchanges;
  if (isFirst()) {
    absl::Status told = store->set(key, formatStatus(status), size() - 1);
    return status.ok() ? told : status;
  }
  absl::StatusOr<std::string> told =
      wait(0, key, deadline + store->options().heartbeat / 2);
  if (absl::IsDeadlineExceeded(told.status()))
    return absl::DeadlineExceededError(
        absl::StrCat("a checkpoint: rank 0 has not ", what, " after ",
                     absl::FormatDuration(deadline), "; ", store->describe(0)));
  return told.ok() ? parseStatus(*told) : told.status();
}

absl::StatusOr<std::vector<std::string>>
WriterPeers::toFirst(const char *what,
                     const absl::StatusOr<std::string> &mine) {
  std::vector<std::string> all(size());
  if (mine.ok())
    all[rank()] = *mine;
  if (size() == 1)
    return mine.ok() ? absl::StatusOr<std::vector<std::string>>(all)
                     : mine.status();
  const std::string key = keyOf(what, rank());
  if (!isFirst()) {
    ++exchanges;
    absl::Status status = mine.status();
    // Rank 0 prints it.
    if (!status.ok())
      status = absl::Status(status.code(),
                            absl::StrCat("rank ", rank(), " on ", hostName(),
                                         ": ", status.message()));
    absl::Status told = store->set(
        key, absl::StrCat(formatStatus(status), mine.ok() ? *mine : ""), 1);
    return told.ok() ? absl::StatusOr<std::vector<std::string>>(all) : told;
  }
  // All are heard, so that none writes any more.
  absl::Status error = mine.status();
  absl::Duration patience = deadline;
  for (int other = 1; other < size(); ++other) {
    absl::StatusOr<std::string> told =
        wait(other, keyOf(what, other), patience);
    absl::Status status = told.status();
    if (absl::IsDeadlineExceeded(status)) {
      status = absl::DeadlineExceededError(absl::StrCat(
          "rank ", other, " has not ", what, " its part after ",
          absl::FormatDuration(deadline), "; ", store->describe(other)));
      // The others have had their time.
      patience = absl::ZeroDuration();
    }
    const std::string fine = formatStatus(absl::OkStatus());
    if (told.ok() && absl::StartsWith(*told, fine))
      all[other] = told->substr(fine.size());
    else if (told.ok())
      status = parseStatus(*told);
    error.Update(status);
  }
  ++exchanges;
  return error.ok() ? absl::StatusOr<std::vector<std::string>>(std::move(all))
                    : error;
}
