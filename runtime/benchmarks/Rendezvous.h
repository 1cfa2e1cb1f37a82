//===- Rendezvous.h - All-reduce by threads that block ----------*- C++ -*-===//
//
// A peer of the runtime's all-reduce: one thread per device, as in runtimes
// that treat virtual devices like real ones. All block until the last operand
// is there, each reduces its part into all results, and all block until the
// last part is done. The arithmetic is the runtime's: in the order of the
// devices.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_BENCHMARKS_RENDEZVOUS_H
#define SHARDC_RT_BENCHMARKS_RENDEZVOUS_H

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace shardc::rt::bench {

class Rendezvous {
public:
  /// `elements` f32 per device.
  Rendezvous(int devices, int64_t elements);
  ~Rendezvous();

  /// All devices run `count` all-reduces; returns when all have finished.
  void run(int64_t count);

  /// The result of a device. All operands are ones.
  const std::vector<float> &result(int device) const { return out[device]; }

private:
  void work(int device);
  void allReduce(int device);
  /// A barrier: returns when all devices have reached it.
  void meet();

  const int devices;
  std::vector<std::vector<float>> in, out;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  uint64_t meetings = 0;

  /// A job's number, its count, and the devices that are not done with it.
  uint64_t job = 0;
  int64_t jobCount = 0;
  int busy = 0;
  bool ending = false;
};

} // namespace shardc::rt::bench

#endif // SHARDC_RT_BENCHMARKS_RENDEZVOUS_H
