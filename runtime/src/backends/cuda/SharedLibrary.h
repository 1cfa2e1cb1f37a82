//===- SharedLibrary.h - A vendor's library, opened at run time -*- C++ -*-===//
//
// One binary runs on machines with and without GPUs: no vendor's library is
// linked. Tables of function pointers are filled from the libraries opened
// here.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_SHAREDLIBRARY_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_SHAREDLIBRARY_H

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <string>
#include <vector>

namespace shardc::rt::cuda {

/// An open library; closes with it. Movable.
class SharedLibrary {
public:
  /// Opens the first of `names` that loads, each a path or a name that the
  /// loader searches for. Unavailable names `what`, all `names` and why each
  /// did not load.
  [[nodiscard]] static absl::StatusOr<SharedLibrary>
  open(const std::string &what, absl::Span<const std::string> names);

  SharedLibrary(SharedLibrary &&other) noexcept;
  SharedLibrary &operator=(SharedLibrary &&other) noexcept;
  ~SharedLibrary();

  /// A function's name, and the pointer that receives its address.
  struct Symbol {
    const char *name;
    void *target; ///< Of a pointer to a function.
  };

  /// Fills in all of `symbols`. Unavailable names the first that is missing.
  [[nodiscard]] absl::Status resolve(absl::Span<const Symbol> symbols) const;

private:
  SharedLibrary(void *handle, std::string name)
      : handle(handle), name(std::move(name)) {}

  void *handle = nullptr;
  std::string name;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_SHAREDLIBRARY_H
