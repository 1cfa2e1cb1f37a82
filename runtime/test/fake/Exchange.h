//===- Exchange.h - Messages of the fake's ranks ----------------*- C++ -*-===//
//
// The ranks of a communicator, in one process or in several, leave messages for
// each other as files in a directory. A rank holds a lock on a file of its own
// as long as it is there, so that others notice when its process has died.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_TEST_FAKE_EXCHANGE_H
#define SHARDC_RT_TEST_FAKE_EXCHANGE_H

#include <string>
#include <vector>

namespace shardc::rt::test {

/// How a wait for a message ended.
enum class Arrival { Here, Gone, Late };

class Exchange {
public:
  Exchange(std::string directory, int rank);
  /// Removes all messages of this rank.
  ~Exchange();
  Exchange(const Exchange &) = delete;
  Exchange &operator=(const Exchange &) = delete;

  /// A new directory for messages.
  static std::string makeDirectory();

  const std::string &directory() const { return path; }

  /// Leaves a message, whole or not at all.
  void leave(const std::string &name, const std::string &bytes);
  /// Waits for a message of `rank`, at most SHARDC_FAKE_PATIENCE_MS.
  Arrival read(const std::string &name, int rank, std::string &bytes) const;
  /// Waits until `rank` has removed a message of this one, as long.
  Arrival awaitRemoval(const std::string &name, int rank);
  void remove(const std::string &name);
  bool has(const std::string &name) const;
  /// Whether `rank` has arrived, and whether it has gone.
  bool hasCome(int rank) const;
  bool isGone(int rank) const;

private:
  std::string memberOf(int rank) const;
  template <typename Condition>
  Arrival await(int rank, Condition isDone) const;

  const std::string path;
  const int rank;
  int lock = -1;
  std::vector<std::string> own;
};

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_FAKE_EXCHANGE_H
