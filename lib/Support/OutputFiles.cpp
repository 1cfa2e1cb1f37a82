//===- OutputFiles.cpp - Outputs that would replace an input --------------===//

#include "shardc/Support/OutputFiles.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace shardc;

/// The file behind a path: device and inode if it exists, or else a folder and
/// a name.
using Identity = std::tuple<dev_t, ino_t, std::string>;

/// Nothing for files without content of their own.
static std::optional<Identity> getIdentity(const struct stat &status) {
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
    return std::nullopt;
  return Identity(status.st_dev, status.st_ino, "");
}

static std::optional<Identity> getIdentity(int stream) {
  struct stat status;
  return fstat(stream, &status) == 0 ? getIdentity(status) : std::nullopt;
}

static std::optional<Identity> getIdentity(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0)
    return getIdentity(status);
  size_t slash = path.rfind('/');
  std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  if (stat(folder.c_str(), &status) != 0)
    return std::nullopt;
  return Identity(status.st_dev, status.st_ino, path.substr(slash + 1));
}

/// The first of `files` with `identity`, or null. "-" is `stream`.
static const NamedFile *findSame(const std::optional<Identity> &identity,
                                 const std::vector<NamedFile> &files,
                                 int stream) {
  for (const NamedFile &file : files)
    if (identity && !file.path.empty() &&
        identity ==
            (file.path == "-" ? getIdentity(stream) : getIdentity(file.path)))
      return &file;
  return nullptr;
}

bool shardc::isCheckpoint(const std::string &folder) {
  std::error_code error;
  std::string path = folder + "/manifest.json";
  // A pipe would wait for its writer.
  if (!std::filesystem::is_regular_file(path, error))
    return false;
  std::ifstream manifest(path);
  char begin[256];
  manifest.read(begin, sizeof(begin));
  std::string_view read(begin, manifest.gcount());
  return read.find("\"shardc-checkpoint\"") != read.npos;
}

/// The checkpoint that `output`, a file or a folder, is or is in, or "".
static std::string findCheckpoint(const std::string &output) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::weakly_canonical(
      std::filesystem::absolute(output, error), error);
  for (; path.has_relative_path(); path = path.parent_path())
    if (shardc::isCheckpoint(path.string()))
      return path.string();
  return "";
}

std::string shardc::checkOutputFiles(const std::vector<NamedFile> &inputs,
                                     const std::vector<NamedFile> &outputs) {
  auto describe = [](const NamedFile &input) {
    std::string path = input.path == "-" ? "standard input" : input.path;
    return "it is the same file as " + path + " (" + input.name + ")";
  };
  std::vector<NamedFile> before;
  for (const NamedFile &output : outputs) {
    if (output.path.empty() || output.path == "-")
      continue;
    std::optional<Identity> identity = getIdentity(output.path);
    if (const NamedFile *input = findSame(identity, inputs, STDIN_FILENO))
      return output.name + " would replace an input: " + describe(*input);
    if (const NamedFile *other = findSame(identity, before, STDOUT_FILENO))
      return output.name + " is the same file as " + other->name +
             "; expected a file for each";
    if (std::string checkpoint = findCheckpoint(output.path);
        !checkpoint.empty())
      return output.name + " would change the checkpoint " + checkpoint +
             "; expected a file elsewhere";
    before.push_back(output);
  }
  std::optional<Identity> standard = getIdentity(STDOUT_FILENO);
  if (const NamedFile *input = findSame(standard, inputs, STDIN_FILENO))
    return "standard output would change an input: " + describe(*input);
  if (const NamedFile *output = findSame(standard, before, STDOUT_FILENO))
    return output->name + " is the same file as standard output; expected a "
                          "file for each";
  return "";
}
