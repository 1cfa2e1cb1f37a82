//===- GemmChoices.h - Algorithms of GEMMs that were timed ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_GEMMCHOICES_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_GEMMCHOICES_H

#include "backends/cuda/CublasLt.h"

#include <map>
#include <optional>
#include <string>

namespace shardc::rt::cuda {

/// The fastest algorithm of each timed GEMM, by a name of the GEMM. A file
/// stores them as lines of text, each for one kind of GPU, version of the
/// driver and version of the library: only the version that made an algorithm
/// understands its bytes.
class GemmChoices {
public:
  struct Choice {
    cublasLtMatmulAlgo_t algorithm = {};
    uint64_t workspaceBytes = 0;
  };

  /// `machine` names GPU and versions.
  explicit GemmChoices(std::string machine) : machine(std::move(machine)) {}

  std::optional<Choice> find(const std::string &gemm) const;
  void add(const std::string &gemm, const Choice &choice);

  /// All lines, also those for other machines.
  std::string text() const;
  /// Takes the lines of `text`; lines of another format are ignored.
  void read(const std::string &text);

  /// Reads the lines of a file, which may not exist yet.
  void readFile(const std::string &path);
  /// Replaces the file as a whole. NotFound: it cannot be written.
  [[nodiscard]] absl::Status writeFile(const std::string &path) const;

private:
  std::string machine;
  /// By machine and GEMM.
  std::map<std::string, Choice> choices;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_GEMMCHOICES_H
