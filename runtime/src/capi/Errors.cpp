//===- Errors.cpp - Errors and structures of the C API --------------------===//

#include "capi/Errors.h"

#include "shardc-rt/Version.h"

#include "absl/strings/str_cat.h"

#include <string>

using namespace shardc::rt;

struct shardc_error {
  absl::StatusCode code;
  std::string message;
};

static_assert(SHARDC_INVALID_ARGUMENT ==
                  static_cast<int>(absl::StatusCode::kInvalidArgument) &&
              SHARDC_UNAUTHENTICATED ==
                  static_cast<int>(absl::StatusCode::kUnauthenticated));

/// Stands for errors for which there is no memory; not freed.
static shardc_error noMemory = {absl::StatusCode::kResourceExhausted,
                                "out of memory"};

shardc_error *capi::outOfMemory() noexcept { return &noMemory; }

shardc_error *capi::toError(const absl::Status &status) noexcept {
  if (status.ok())
    return nullptr;
  try {
    return new shardc_error{status.code(), std::string(status.message())};
  } catch (...) {
    return &noMemory;
  }
}

absl::Status capi::isNull(const char *name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the argument '", name, "' is null"));
}

absl::Status capi::isOfSize(size_t size, size_t known) {
  if (size < known)
    return absl::InvalidArgumentError(
        absl::StrCat("a structure has struct_size ", size, "; expected ", known,
                     ": set it to the sizeof of the structure"));
  return absl::InvalidArgumentError(absl::StrCat(
      "a structure of ", size, " bytes has a field behind byte ", known,
      " that this library (", version(), ") does not know"));
}

absl::Status capi::isNoNumber(const char *what, size_t number, size_t size) {
  return absl::NotFoundError(
      absl::StrCat("there is no ", what, " ", number, " of ", size));
}

shardc_code shardc_error_code(const shardc_error *error) {
  return error ? static_cast<shardc_code>(error->code) : SHARDC_OK;
}

const char *shardc_error_message(const shardc_error *error) {
  return error ? error->message.c_str() : "";
}

void shardc_error_free(shardc_error *error) {
  if (error != &noMemory)
    delete error;
}

const char *shardc_version(void) { return version(); }
