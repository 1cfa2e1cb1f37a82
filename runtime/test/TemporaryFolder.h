//===- TemporaryFolder.h - A folder of one test -----------------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_TEMPORARYFOLDER_H
#define SHARDC_RT_TEST_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace shardc::rt::test {

/// A new, empty folder, which goes away with its content.
class TemporaryFolder {
public:
  TemporaryFolder() : path(testing::TempDir() + "shardc-XXXXXX") {
    if (!mkdtemp(path.data()))
      ADD_FAILURE() << "cannot make a folder in " << testing::TempDir();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  /// The path of `name` in the folder.
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }

private:
  std::string path;
};

inline std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

inline void writeAll(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_TEMPORARYFOLDER_H
