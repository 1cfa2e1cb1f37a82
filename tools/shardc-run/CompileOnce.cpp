//===- CompileOnce.cpp - A plan from the cache or the compiler ------------===//

#include "CompileOnce.h"

#include "PlanCache.h"
#include "PlanKey.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>

using namespace shardc::run;

/// The folder of the cache, or empty.
static std::string findFolder(const CacheChoice &choice) {
  if (choice.none || !choice.folder.empty())
    return choice.none ? "" : choice.folder;
  if (const char *chosen = std::getenv("SHARDC_PLAN_CACHE"))
    return chosen;
  const char *cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache)
    return absl::StrCat(cache, "/shardc");
  const char *home = std::getenv("HOME");
  return home && *home ? absl::StrCat(home, "/.cache/shardc") : "";
}

static std::string remark(const absl::Status &status) {
  return absl::StrCat("shardc-run: remark: no plan cache: ", status.message(),
                      "\n");
}

CompileOutcome shardc::run::compileOnce(const CompileRequest &request,
                                        const CacheChoice &choice) {
  std::string folder = findFolder(choice);
  std::optional<std::string> key;
  if (!folder.empty())
    key = planKey(request);
  if (!key)
    return compileInput(request);
  absl::StatusOr<std::unique_ptr<PlanCache>> cache = PlanCache::open(folder);
  if (!cache.ok()) {
    if (!choice.folder.empty())
      return {1, "",
              absl::StrCat("shardc-run: error: --plan-cache: ",
                           cache.status().message(), "\n")};
    CompileOutcome outcome = compileInput(request);
    outcome.diagnostics += remark(cache.status());
    return outcome;
  }
  absl::StatusOr<PlanCache::Entry> entry = (*cache)->find(*key);
  std::string file = (*cache)->pathOf(*key);
  if (entry.ok())
    return {0, std::move(entry->plan),
            absl::StrCat(entry->diagnostics, request.path,
                         ": remark: the plan was compiled before (", file,
                         ")\n")};
  CompileOutcome outcome = compileInput(request);
  absl::Status stored;
  // The plan of a model that changed meanwhile is not kept.
  if (outcome.exitCode == 0 && planKey(request) == key)
    stored = (*cache)->store(*key, {outcome.diagnostics, outcome.plan});
  if (!absl::IsNotFound(entry.status()))
    absl::StrAppend(&outcome.diagnostics, "shardc-run: remark: ", file,
                    ", a plan compiled before, is damaged: ",
                    std::string(entry.status().message()),
                    "; compiled again\n");
  if (!stored.ok())
    outcome.diagnostics += remark(stored);
  return outcome;
}
