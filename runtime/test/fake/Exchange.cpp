//===- Exchange.cpp - Messages of the fake's ranks ------------------------===//

#include "Exchange.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace shardc::rt::test;

std::string Exchange::makeDirectory() {
  const char *folder = std::getenv("TMPDIR");
  std::string path =
      std::string(folder ? folder : "/tmp") + "/shardc-fake-XXXXXX";
  return mkdtemp(path.data()) ? path : "";
}

std::string Exchange::memberOf(int rank) const {
  return path + "/member." + std::to_string(rank);
}

Exchange::Exchange(std::string directory, int rank)
    : path(std::move(directory)), rank(rank) {
  mkdir(path.c_str(), 0700);
  // Others see the file when it is locked.
  std::string place = path + "/coming." + std::to_string(rank);
  lock = open(place.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  flock(lock, LOCK_EX | LOCK_NB);
  rename(place.c_str(), memberOf(rank).c_str());
}

Exchange::~Exchange() {
  for (const std::string &name : own)
    unlink((path + "/" + name).c_str());
  unlink(memberOf(rank).c_str());
  close(lock);
  rmdir(path.c_str());
}

void Exchange::leave(const std::string &name, const std::string &bytes) {
  std::string place = path + "/" + name;
  std::ofstream(place + ".part", std::ios::binary) << bytes;
  rename((place + ".part").c_str(), place.c_str());
  own.push_back(name);
}

void Exchange::remove(const std::string &name) {
  unlink((path + "/" + name).c_str());
  own.erase(std::remove(own.begin(), own.end(), name), own.end());
}

bool Exchange::has(const std::string &name) const {
  return access((path + "/" + name).c_str(), F_OK) == 0;
}

bool Exchange::hasCome(int other) const {
  return access(memberOf(other).c_str(), F_OK) == 0;
}

bool Exchange::isGone(int other) const {
  int member = open(memberOf(other).c_str(), O_RDONLY | O_CLOEXEC);
  if (member < 0)
    return true;
  bool isFree = flock(member, LOCK_SH | LOCK_NB) == 0;
  close(member);
  return isFree;
}

/// Waits for what `from` does.
template <typename Condition>
Arrival Exchange::await(int from, Condition isDone) const {
  using Clock = std::chrono::steady_clock;
  const char *told = std::getenv("SHARDC_FAKE_PATIENCE_MS");
  auto patience = std::chrono::milliseconds(told ? std::atoi(told) : 60000);
  Clock::time_point start = Clock::now();
  for (int64_t polls = 1; !isDone(); ++polls) {
    // Its earlier messages count only if it ended in order.
    if (polls % 64 == 0 && isGone(from) && !isDone())
      return Arrival::Gone;
    if (Clock::now() - start > patience)
      return Arrival::Late;
    // A peer that computes for long has the processor to itself.
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::min<int64_t>(50 + 2 * polls, 1000)));
  }
  return Arrival::Here;
}

Arrival Exchange::awaitRemoval(const std::string &name, int by) {
  Arrival arrival = await(by, [&] { return !has(name); });
  if (arrival == Arrival::Here)
    remove(name);
  return arrival;
}

Arrival Exchange::read(const std::string &name, int from,
                       std::string &bytes) const {
  Arrival arrival = await(from, [&] { return has(name); });
  if (arrival != Arrival::Here)
    return arrival;
  std::ifstream file(path + "/" + name, std::ios::binary | std::ios::ate);
  bytes.resize(file.tellg());
  file.seekg(0);
  file.read(bytes.data(), bytes.size());
  return Arrival::Here;
}
