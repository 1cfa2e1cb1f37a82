//===- CaptureStream.cpp - The text that a library prints -----------------===//

#include "shardc/Support/CaptureStream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

std::string shardc::captureStream(int stream, llvm::function_ref<void()> run) {
  int file = memfd_create("captured", MFD_CLOEXEC);
  int original = fcntl(stream, F_DUPFD_CLOEXEC, 0);
  bool isCaptured = file >= 0 && original >= 0 && dup2(file, stream) >= 0;
  run();
  std::string text;
  if (isCaptured) {
    dup2(original, stream);
    char bytes[4096];
    lseek(file, 0, SEEK_SET);
    for (ssize_t size; (size = read(file, bytes, sizeof bytes)) > 0;)
      text.append(bytes, size);
  }
  close(file);
  close(original);
  return text;
}
