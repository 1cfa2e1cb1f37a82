//===- OutputFiles.h - Outputs that would replace an input ------*- C++ -*-===//
//
// Faults of output paths that are known before anything is written, in terms of
// the standard library and POSIX alone. Thread-safe; other processes may change
// the files meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SUPPORT_OUTPUTFILES_H
#define SHARDC_SUPPORT_OUTPUTFILES_H

#include <string>
#include <vector>

namespace shardc {

/// A file and its name in errors: "the model", "--data", "-o p.shardc".
struct NamedFile {
  std::string name;
  /// Empty: none. "-" is standard input among inputs, and standard output among
  /// outputs.
  std::string path;
};

/// Whether `folder` is a checkpoint: it has a manifest, as docs/Checkpoints.md
/// describes it.
bool isCheckpoint(const std::string &folder);

/// An error if an output is the same file as an input, another output or
/// standard output, also through symbolic and hard links; otherwise empty.
/// Files without content of their own, such as terminals, do not count. Also an
/// error if an output is a file in a checkpoint, whichever that is: one that
/// another file replaces, or is added to, is damaged.
std::string checkOutputFiles(const std::vector<NamedFile> &inputs,
                             const std::vector<NamedFile> &outputs);

} // namespace shardc

#endif // SHARDC_SUPPORT_OUTPUTFILES_H
