//===- CompileOnce.h - A plan from the cache or the compiler ----*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPILEONCE_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPILEONCE_H

#include "CompileInput.h"

namespace shardc::run {

/// The choice of a plan cache.
struct CacheChoice {
  bool none = false;
  /// The user's choice; empty: the environment decides (SHARDC_PLAN_CACHE,
  /// where empty means none, else XDG_CACHE_HOME or HOME).
  std::string folder;
};

/// Finds the plan in the cache, or compiles it and stores it there. Exit code 1
/// if the user's folder is refused; any other failure of the cache is a remark
/// among the diagnostics.
CompileOutcome compileOnce(const CompileRequest &request,
                           const CacheChoice &choice);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPILEONCE_H
