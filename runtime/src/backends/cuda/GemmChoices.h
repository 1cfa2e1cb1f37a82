//===- GemmChoices.h - Algorithms of GEMMs that were timed ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_GEMMCHOICES_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_GEMMCHOICES_H

#include "backends/cuda/CublasLt.h"

#include <map>
#include <optional>
#include <string>

namespace shardc::rt::cuda {

/// The fastest algorithm of each GEMM that was timed, by a name of the
/// GEMM. They are kept in a file as lines of text, each for one kind of GPU,
/// version of the driver and of the library: an algorithm is a number of bytes
/// that only the version that gave it understands.
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

  /// All lines, those for other machines too.
  std::string text() const;
  /// Takes the lines of `text`; those that are none are left out.
  void read(const std::string &text);

  /// Lines of a file that may not be there yet.
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
