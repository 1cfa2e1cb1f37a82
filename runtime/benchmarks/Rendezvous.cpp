//===- Rendezvous.cpp - All-reduce by threads that block ------------------===//

#include "Rendezvous.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt::bench;

Rendezvous::Rendezvous(int devices, int64_t elements)
    : devices(devices), in(devices, std::vector<float>(elements, 1.0f)),
      out(devices, std::vector<float>(elements)) {
  for (int device = 0; device < devices; ++device)
    threads.emplace_back([this, device] { work(device); });
}

Rendezvous::~Rendezvous() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void Rendezvous::run(int64_t count) {
  std::unique_lock<std::mutex> lock(mutex);
  jobCount = count;
  busy = devices;
  ++job;
  changed.notify_all();
  changed.wait(lock, [this] { return busy == 0; });
}

void Rendezvous::work(int device) {
  for (uint64_t last = 0;;) {
    int64_t count;
    {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return ending || job != last; });
      if (ending)
        return;
      last = job;
      count = jobCount;
    }
    for (int64_t i = 0; i < count; ++i)
      allReduce(device);
    std::lock_guard<std::mutex> lock(mutex);
    if (--busy == 0)
      changed.notify_all();
  }
}

void Rendezvous::meet() {
  std::unique_lock<std::mutex> lock(mutex);
  uint64_t meeting = meetings;
  if (++arrived == devices) {
    arrived = 0;
    ++meetings;
    changed.notify_all();
    return;
  }
  changed.wait(lock, [&] { return meetings != meeting; });
}

void Rendezvous::allReduce(int device) {
  meet();
  int64_t size = in[0].size();
  int64_t begin = size * device / devices;
  int64_t end = size * (device + 1) / devices;
  // Blocks stay in the first cache from the first addend to the last copy.
  constexpr int64_t block = 1024;
  for (; begin < end; begin += block) {
    int64_t length = std::min(block, end - begin);
    float *sum = out[0].data() + begin;
    std::memcpy(sum, in[0].data() + begin, length * sizeof(float));
    for (int peer = 1; peer < devices; ++peer) {
      const float *addend = in[peer].data() + begin;
      for (int64_t i = 0; i < length; ++i)
        sum[i] += addend[i];
    }
    for (int peer = 1; peer < devices; ++peer)
      std::memcpy(out[peer].data() + begin, sum, length * sizeof(float));
  }
  meet();
}
