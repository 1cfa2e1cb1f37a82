//===- Processes.h - Tests that are several processes -----------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_PROCESSES_H
#define SHARDC_RT_TEST_PROCESSES_H

#include "TemporaryFolder.h"

#include "shardc-rt/Ranks.h"

#include <cstdlib>
#include <functional>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace shardc::rt::test {

/// A port of the loopback interface without a listener.
inline int freePort() {
  int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  (void)bind(descriptor, reinterpret_cast<sockaddr *>(&address), length);
  getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &length);
  close(descriptor);
  return ntohs(address.sin_port);
}

/// The results of `body` in `size` processes that run at the same time, by
/// rank.
inline std::vector<std::string>
runRanks(int size, const std::function<std::string(const Ranks &)> &body) {
  int port = freePort();
  // For messages of the fake that processes leave behind when they die.
  TemporaryFolder folder;
  std::vector<int> pipes;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (pipe(ends) != 0)
      return {};
    pid_t child = fork();
    if (child == 0) {
      setenv("TMPDIR", (folder / "").c_str(), 1);
      std::string said = body({rank, size, rank, "127.0.0.1", port, "a test"});
      ssize_t written = write(ends[1], said.data(), said.size());
      _exit(written < 0);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
    children.push_back(child);
  }
  std::vector<std::string> all;
  for (int rank = 0; rank < size; ++rank) {
    std::string &said = all.emplace_back();
    char buffer[4096];
    for (ssize_t count;
         (count = read(pipes[rank], buffer, sizeof(buffer))) > 0;)
      said.append(buffer, count);
    close(pipes[rank]);
    int status = 0;
    waitpid(children[rank], &status, 0);
    if (WIFSIGNALED(status))
      said += "signal " + std::to_string(WTERMSIG(status));
  }
  return all;
}

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_PROCESSES_H
