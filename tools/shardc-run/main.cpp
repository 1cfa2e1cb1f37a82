//===- main.cpp - Trains a plan or a model --------------------------------===//

#include "Arguments.h"
#include "Session.h"
#include "StandardOutput.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

/// Opens missing standard streams, whose numbers would otherwise go to the next
/// files that are opened. Writing to such a stream is an error, as it is
/// without it.
static void holdStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
      return;
}

int main(int argc, char **argv) {
  holdStandardStreams();
  // A file that grows beyond the limit of its size is an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
  shardc::run::StandardOutput output;
  int exitCode = 0;
  std::optional<shardc::run::Arguments> arguments =
      shardc::run::parseArguments(argc, argv, exitCode);
  if (arguments)
    exitCode = shardc::run::runSession(*arguments);
  int incomplete = output.finish();
  return exitCode ? exitCode : incomplete;
}
