//===- InputFiles.cpp - Inputs without an end or too large ----------------===//

#include "shardc/Support/InputFiles.h"

#include <string_view>
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

std::string shardc::checkIsFile(const std::string &path) {
  if (std::string error = checkInputEnds(path); !error.empty())
    return error;
  struct stat status;
  return stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)
             ? ""
             : "'" + path + "' is not a regular file";
}

std::string shardc::checkInputSize(const std::string &path,
                                   uint64_t mostBytes) {
  if (std::string error = checkIsFile(path); !error.empty())
    return error;
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    return "";
  auto bytes = static_cast<uint64_t>(status.st_size);
  return bytes <= mostBytes
             ? ""
             : "'" + path + "' has " + std::to_string(bytes) +
                   " bytes; expected at most " + std::to_string(mostBytes);
}

bool shardc::isScheduleFile(const std::string &schedule) {
  constexpr std::string_view ending = ".csv";
  return schedule.size() >= ending.size() &&
         std::string_view(schedule).substr(schedule.size() - ending.size()) ==
             ending;
}
