//===- CompileOnce.h - A plan from the cache or the compiler ----*- C++ -*-===//

#ifndef SHARDC_TOOLS_SHARDC_RUN_COMPILEONCE_H
#define SHARDC_TOOLS_SHARDC_RUN_COMPILEONCE_H

#include "CompileInput.h"

namespace shardc::run {

/// Which plan cache to use.
struct CacheChoice {
  bool none = false;
  /// What the user chose; empty: the environment decides (SHARDC_PLAN_CACHE,
  /// where empty means none, else XDG_CACHE_HOME or HOME).
  std::string folder;
};

/// Finds the plan in the cache, or compiles and keeps it. Exit code 1 if the
/// folder the user chose is refused; a cache that fails otherwise is a remark
/// among the diagnostics.
CompileOutcome compileOnce(const CompileRequest &request,
                           const CacheChoice &choice);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARDC_RUN_COMPILEONCE_H
