//===- PlanCache.h - The cache of compiled plans ----------------*- C++ -*-===//
//
// A folder of files, one per plan. Plans hold machine code, so the folder and
// its files are used only if nobody but this user can write them. Files appear
// whole, by renaming, and are checked when they are read: any number of
// processes may use the folder at the same time.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_PLANCACHE_H
#define SHARDC_TOOLS_SHARDC_RUN_PLANCACHE_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <string>

namespace shardc::run {

class PlanCache {
public:
  struct Entry {
    /// The diagnostics of the compiler.
    std::string diagnostics;
    std::string plan;
  };

  /// Uses the folder `path`, made for this user alone if it is missing.
  /// FailedPrecondition: another user owns it or can write it. Other codes: it
  /// cannot be made or opened.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<PlanCache>>
  open(const std::string &path);
  ~PlanCache();
  PlanCache(const PlanCache &) = delete;
  PlanCache &operator=(const PlanCache &) = delete;

  /// The entry stored under exactly this key. NotFound: none. DataLoss: its
  /// file is damaged or not this user's.
  [[nodiscard]] absl::StatusOr<Entry> find(const std::string &key) const;

  /// Stores `entry`, and removes the least recently used ones while all take
  /// more than `maxBytes`.
  [[nodiscard]] absl::Status store(const std::string &key, const Entry &entry);

  /// The file of `key`, whether or not there is one.
  std::string pathOf(const std::string &key) const;

  static constexpr uint64_t maxBytes = uint64_t(256) << 20;

private:
  PlanCache(std::string path, int folder);
  void trim() const;

  std::string path;
  int folder; ///< Open for as long as this lives.
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_PLANCACHE_H
