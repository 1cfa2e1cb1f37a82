//===- StandardOutput.h - std::cout, with the reasons of failures -*- C++ -*-=//
//
// Not thread-safe: one thread prints.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_STANDARDOUTPUT_H
#define SHARDC_TOOLS_SHARDC_RUN_STANDARDOUTPUT_H

#include <streambuf>
#include <string>

namespace shardc::run {

/// Takes the output of std::cout while it exists, and writes it in whole lines,
/// also to a pipe. The streams of the standard library forget why a write
/// failed; this one keeps the first reason.
class StandardOutput : private std::streambuf {
public:
  StandardOutput();
  ~StandardOutput() override;

  /// Writes the rest. Exit code 0, or 1 and an error printed if not everything
  /// was written.
  int finish();

private:
  int overflow(int character) override;
  std::streamsize xsputn(const char *text, std::streamsize size) override;
  int sync() override;

  /// Writes the first `size` bytes of `buffered`; nothing after a failure.
  void writeOut(size_t size);

  std::streambuf *original;
  std::string buffered;
  int error = 0; ///< The `errno` of the first failure; 0: none.
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_STANDARDOUTPUT_H
