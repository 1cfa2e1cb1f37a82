//===- InputFiles.cpp - Inputs without an end -----------------------------===//

#include "shardc/Support/InputFiles.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

std::string shardc::checkInputEnds(const std::string &path) {
  struct stat status;
  int result =
      path == "-" ? fstat(STDIN_FILENO, &status) : stat(path.c_str(), &status);
  if (result != 0 || !S_ISCHR(status.st_mode))
    return "";
  // Linux numbers its memory devices so
  // (Documentation/admin-guide/devices.txt).
  constexpr unsigned memory = 1, zero = 5, full = 7, random = 8, urandom = 9;
  unsigned number = minor(status.st_rdev);
  bool isEndless = major(status.st_rdev) == memory &&
                   (number == zero || number == full || number == random ||
                    number == urandom);
  return isEndless ? (path == "-" ? "standard input" : "'" + path + "'") +
                         " is a device without an end; expected a file"
                   : "";
}
