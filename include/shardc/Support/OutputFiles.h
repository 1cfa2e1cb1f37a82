//===- OutputFiles.h - Outputs that would replace an input ------*- C++ -*-===//
//
// What can be known to be wrong with outputs before anything is written, in
// terms of the standard library and POSIX alone. Thread-safe; others may change
// the files meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_OUTPUTFILES_H
#define SHARDC_SUPPORT_OUTPUTFILES_H

#include <string>
#include <vector>

namespace shardc {

/// A file, and what an error calls it: "the model", "--data", "-o p.shardc".
struct NamedFile {
  std::string name;
  /// Empty: none. "-" is standard input among inputs, and standard output among
  /// outputs.
  std::string path;
};

/// Says which output is the same file as an input, another output or what
/// standard output goes to, also by way of symbolic and hard links; empty if
/// there is none. What is no file with content of its own, such as a terminal,
/// is no such file.
std::string checkOutputFiles(const std::vector<NamedFile> &inputs,
                             const std::vector<NamedFile> &outputs);

} // namespace shardc

#endif // SHARDC_SUPPORT_OUTPUTFILES_H
