//===- Communication.h - Collectives of the fake ----------------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_FAKE_COMMUNICATION_H
#define SHARDC_RT_TEST_FAKE_COMMUNICATION_H

#include "Exchange.h"
#include "State.h"

#include <atomic>

namespace shardc::rt::test {

struct Operation {
  enum Kind { AllReduce, AllGather, ReduceScatter, Send, Receive };
  Kind kind;
  const void *in;
  void *out;
  size_t count;
  int type, reduction, peer;
};

/// Of an element of an ncclDataType_t: its bytes, and its name in the runtime's
/// kernels.
uint64_t widthOf(int type);
const char *nameOf(int type);

/// "WHAT.A.B": the name of a message.
std::string numbered(const char *what, uint64_t a, int b);

struct Communication {
  int rank = 0, size = 0;
  std::unique_ptr<Exchange> exchange; ///< None: being split off.
  std::atomic<ncclResult_t> error = ncclSuccess;
  std::atomic<bool> isAborted = false;
  uint64_t collectives = 0, removed = 0;
  std::map<std::pair<int, int>, uint64_t> messages;

  void run(const std::vector<Operation> &operations);

private:
  std::string contribution(const Operation &operation) const;
  std::string nameOfMessage(int from, int to);
  bool receive(const Operation &operation);
  /// Whether `arrival` is in time; otherwise streams stop here.
  bool note(Arrival arrival);
  /// Reports `result` and stops streams.
  bool fail(ncclResult_t result);
  void combine(const Operation &operation,
               const std::vector<std::string> &all) const;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_FAKE_COMMUNICATION_H
