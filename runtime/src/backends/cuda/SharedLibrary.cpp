//===- SharedLibrary.cpp - A vendor's library, opened at run time ---------===//

#include "backends/cuda/SharedLibrary.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <dlfcn.h>
#include <utility>

using namespace shardc::rt::cuda;

absl::StatusOr<SharedLibrary>
SharedLibrary::open(const std::string &what,
                    absl::Span<const std::string> names) {
  std::string tried;
  for (const std::string &name : names) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
      return SharedLibrary(handle, name);
    const char *reason = dlerror();
    absl::StrAppend(&tried, tried.empty() ? "" : "; ", "looked for ", name,
                    ": ", reason ? reason : "unknown error");
  }
  return absl::UnavailableError(absl::StrCat("no ", what, ": ", tried));
}

SharedLibrary::SharedLibrary(SharedLibrary &&other) noexcept
    : handle(std::exchange(other.handle, nullptr)),
      name(std::move(other.name)) {}

SharedLibrary &SharedLibrary::operator=(SharedLibrary &&other) noexcept {
  std::swap(handle, other.handle);
  std::swap(name, other.name);
  return *this;
}

SharedLibrary::~SharedLibrary() {
  if (handle)
    dlclose(handle);
}

absl::Status SharedLibrary::resolve(absl::Span<const Symbol> symbols) const {
  for (const Symbol &symbol : symbols) {
    void *address = dlsym(handle, symbol.name);
    if (!address)
      return absl::UnavailableError(absl::StrCat(
          name, " has no function ", symbol.name, ": it is too old"));
    std::memcpy(symbol.target, &address, sizeof(address));
  }
  return absl::OkStatus();
}
