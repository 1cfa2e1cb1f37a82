//===- InputFiles.h - Inputs without an end or too large --------*- C++ -*-===//
//
// In terms of the standard library and POSIX alone.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_INPUTFILES_H
#define SHARDC_SUPPORT_INPUTFILES_H

#include <cstdint>
#include <string>

namespace shardc {

/// Why the file at `path` ("-": standard input) cannot be read to its end, or
/// "": it is a device that never ends, such as /dev/zero.
std::string checkInputEnds(const std::string &path);

/// Why the file at `path` is not a regular file, or "". A file that does not
/// exist is no error here: who opens it reports that.
std::string checkIsFile(const std::string &path);

/// Why the file at `path` is not a regular file of at most `mostBytes`, or "",
/// as `checkIsFile` has it.
std::string checkInputSize(const std::string &path, uint64_t mostBytes);

/// Whether `schedule`, the order of a pipeline's tasks on a command line, is
/// the path of a file and not a name: it ends in .csv.
bool isScheduleFile(const std::string &schedule);

} // namespace shardc

#endif // SHARDC_SUPPORT_INPUTFILES_H
