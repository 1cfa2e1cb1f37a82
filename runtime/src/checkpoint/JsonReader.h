//===- JsonReader.h - JSON that is not trusted ------------------*- C++ -*-===//
//
// Thread-safety: values; nothing is shared.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_JSONREADER_H
#define SHARDC_RT_SRC_CHECKPOINT_JSONREADER_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shardc::rt {

/// Whether `text` is UTF-8, which JSON texts are.
bool isUtf8(const std::string &text);

/// Parses a JSON text whose values nest at most eight levels deep.
/// InvalidArgument: not JSON, deeper, or an object with a key twice.
[[nodiscard]] absl::StatusOr<nlohmann::json> parseJson(absl::string_view text);

/// Reads the members of an object. The first member that is missing or of
/// another type becomes `error`; what is read from then on has no meaning.
class JsonReader {
public:
  /// `object` is borrowed, and may be any value. `what` names it in errors.
  JsonReader(const nlohmann::json &object, std::string what);

  /// A string.
  std::string text(const char *key);
  /// An integer of at least `least`.
  int64_t integer(const char *key, int64_t least = 0);
  /// A number; null is NaN.
  double number(const char *key);
  bool boolean(const char *key);
  /// Eight lower-case hexadecimal digits.
  uint32_t checksum(const char *key);
  /// An array of integers of at least 0.
  std::vector<int64_t> integers(const char *key);
  /// An array; empty if there is none.
  const nlohmann::json &array(const char *key);
  /// An object; null if there is none.
  const nlohmann::json &object(const char *key);

  /// Notes an error of InvalidArgument, unless there is one.
  void fail(absl::string_view message);
  const absl::Status &error() const { return status; }

private:
  const nlohmann::json *find(const char *key);

  const nlohmann::json &value;
  std::string what;
  absl::Status status;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_JSONREADER_H
